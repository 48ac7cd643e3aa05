"""Networks of public packages at sizes at which they are used, none of which our kernels or passes were made for: what a user brings.

They need `scripts/setup networks`. tests/python/package_networks.py has small ones of the same packages, for right results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from nets import inputs, made
from package_networks import Part
from torch import nn


def vision(name: str, classes: int = 21) -> nn.Module:
    import torchvision

    return Part(getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None, num_classes=classes), "out")


def backbone(name: str) -> nn.Module:
    import torchvision

    return getattr(torchvision.models, name)(weights=None).features


def segmentation(kind: str, encoder: str) -> nn.Module:
    import segmentation_models_pytorch

    return getattr(segmentation_models_pytorch, kind)(encoder_weights=None, classes=3, encoder_name=encoder)


def features(name: str) -> nn.Module:
    """All levels of an encoder, as decoders take them."""
    import timm

    return timm.create_model(name, pretrained=False, features_only=True)


def monai(name: str, *sizes, **options) -> nn.Module:
    from monai.networks import nets

    return getattr(nets, name)(*sizes, **options)


def vae_decoder() -> nn.Module:
    from diffusers import AutoencoderKL

    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 3, "up_block_types": ("UpDecoderBlock2D",) * 3}
    return AutoencoderKL(block_out_channels=(64, 128, 128), latent_channels=4, **blocks).decoder


def tiny_vae_decoder() -> nn.Module:
    from diffusers import AutoencoderTiny

    return AutoencoderTiny().decoder


def oobleck_decoder() -> nn.Module:
    from diffusers import AutoencoderOobleck

    return AutoencoderOobleck(encoder_hidden_size=32, downsampling_ratios=[2, 4, 4, 8], channel_multiples=[1, 2, 4, 8], decoder_channels=64, decoder_input_channels=64).decoder


def denoiser() -> nn.Module:
    from diffusers import UNet2DModel

    unet = UNet2DModel(sample_size=32, block_out_channels=(64, 128, 256), down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
                       attention_head_dim=8)
    return Part(unet, "sample", timestep=7)


def encodec_decoder() -> nn.Module:
    from transformers import EncodecConfig, EncodecModel

    return EncodecModel(EncodecConfig()).decoder


def speecht5_hifigan() -> nn.Module:
    from transformers import SpeechT5HifiGan, SpeechT5HifiGanConfig

    return SpeechT5HifiGan(SpeechT5HifiGanConfig())


def segformer() -> nn.Module:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    return Part(SegformerForSemanticSegmentation(SegformerConfig()), "logits")


def swin2sr() -> nn.Module:
    from transformers import Swin2SRConfig, Swin2SRForImageSuperResolution

    return Part(Swin2SRForImageSuperResolution(Swin2SRConfig(embed_dim=60, depths=[4, 4], num_heads=[6, 6], window_size=8, image_size=48)), "reconstruction")


def dpt() -> nn.Module:
    from transformers import DPTConfig, DPTForDepthEstimation

    config = DPTConfig(hidden_size=192, num_hidden_layers=4, num_attention_heads=4, intermediate_size=768, image_size=224, backbone_out_indices=[0, 1, 2, 3],
                       neck_hidden_sizes=[48, 96, 192, 192], fusion_hidden_size=64)
    return Part(DPTForDepthEstimation(config), "predicted_depth")


def depth_anything() -> nn.Module:
    from transformers import DepthAnythingConfig, DepthAnythingForDepthEstimation, Dinov2Config

    encoder = Dinov2Config(hidden_size=192, num_hidden_layers=4, num_attention_heads=3, image_size=224, patch_size=14, out_features=["stage1", "stage2", "stage3", "stage4"],
                           reshape_hidden_states=False)
    config = DepthAnythingConfig(backbone_config=encoder, reassemble_hidden_size=192, neck_hidden_sizes=[48, 96, 192, 192], fusion_hidden_size=64, head_hidden_size=32, patch_size=14)
    return Part(DepthAnythingForDepthEstimation(config), "predicted_depth")


def vitpose() -> nn.Module:
    from transformers import VitPoseBackboneConfig, VitPoseConfig, VitPoseForPoseEstimation

    encoder = VitPoseBackboneConfig(hidden_size=192, num_hidden_layers=6, num_attention_heads=3, out_features=["stage6"])
    return Part(VitPoseForPoseEstimation(VitPoseConfig(backbone_config=encoder, use_simple_decoder=False)), "heatmaps")


def upernet() -> nn.Module:
    from transformers import ConvNextConfig, UperNetConfig, UperNetForSemanticSegmentation

    encoder = ConvNextConfig(hidden_sizes=[96, 192, 384, 768], depths=[2, 2, 4, 2], out_features=["stage1", "stage2", "stage3", "stage4"])
    return Part(UperNetForSemanticSegmentation(UperNetConfig(backbone_config=encoder, hidden_size=128, use_auxiliary_head=False, num_labels=20)), "logits")


def sam_encoder() -> nn.Module:
    from transformers import SamVisionConfig
    from transformers.models.sam.modeling_sam import SamVisionEncoder

    config = SamVisionConfig(hidden_size=192, num_hidden_layers=4, num_attention_heads=3, image_size=512, mlp_dim=768, global_attn_indexes=[3], window_size=14)
    return Part(SamVisionEncoder(config), "last_hidden_state")


def vits_decoder() -> nn.Module:
    from transformers import VitsConfig
    from transformers.models.vits.modeling_vits import VitsHifiGan

    return VitsHifiGan(VitsConfig(upsample_initial_channel=256, flow_size=96))


class ModulatedConvolution(nn.Module):
    """A layer of StyleGAN2 (Karras et al. 2020), which scales its weights by a style and to unit gain; `doubles`: transposed, and blurred."""

    def __init__(self, channels: int, results: int, doubles: bool):
        super().__init__()
        self.weight, self.style, self.doubles = nn.Parameter(torch.randn(results, channels, 3, 3) / (3 * channels**0.5)), nn.Linear(128, channels), doubles
        self.bias = nn.Parameter(torch.zeros(1, results, 1, 1))
        line = torch.tensor([1.0, 3.0, 3.0, 1.0])
        self.register_buffer("blur", (line[:, None] * line / 16).expand(results, 1, 4, 4).clone())

    def forward(self, x, style):
        weight = self.weight * (self.style(style)[0] + 1)[None, :, None, None]
        weight = weight * (weight.square().sum((1, 2, 3), keepdim=True) + 1e-8).rsqrt()
        if self.doubles:
            x = F.conv2d(F.conv_transpose2d(x, weight.transpose(0, 1), stride=2), self.blur, padding=1, groups=len(self.blur))
        else:
            x = F.conv2d(x, weight, padding=1)
        return F.leaky_relu(x + self.bias, 0.2) * 2**0.5


class StyleGan2(nn.Module):
    """A synthesis network to 64 x 64 pixels."""

    def __init__(self):
        super().__init__()
        widths = [256, 256, 128, 64, 64]
        self.first = nn.Parameter(torch.randn(1, widths[0], 4, 4))
        self.layers = nn.ModuleList([ModulatedConvolution(widths[i + (k > 0)], widths[i + 1], k == 0) for i in range(4) for k in range(2)])
        self.image = nn.Conv2d(64, 3, 1)

    def forward(self, x):
        y = self.first
        for layer in self.layers:
            y = layer(y, x)
        return self.image(y)


class MedNextBlock(nn.Module):
    """Depthwise convolution, norm, two pointwise ones (Roy et al. 2023); the package itself is not on PyPI."""

    def __init__(self, width: int, kernel: int):
        super().__init__()
        self.depthwise, self.norm = nn.Conv3d(width, width, kernel, padding=kernel // 2, groups=width), nn.GroupNorm(width, width)
        self.widen, self.narrow = nn.Conv3d(width, 2 * width, 1), nn.Conv3d(2 * width, width, 1)

    def forward(self, x):
        return x + self.narrow(F.gelu(self.widen(self.norm(self.depthwise(x)))))


class MedNext(nn.Module):
    def __init__(self, width: int = 32, kernel: int = 3, levels: int = 2):
        super().__init__()
        widths = [width << i for i in range(levels + 1)]
        half, pairs = kernel // 2, list(zip(widths, widths[1:]))
        self.stem, self.head = nn.Conv3d(1, width, 1), nn.Conv3d(width, 2, 1)
        self.encoder = nn.ModuleList(nn.Sequential(MedNextBlock(each, kernel), MedNextBlock(each, kernel)) for each in widths)
        self.down = nn.ModuleList(nn.Sequential(nn.Conv3d(a, a, kernel, 2, half, groups=a), nn.Conv3d(a, b, 1)) for a, b in pairs)
        self.up = nn.ModuleList(nn.Sequential(nn.ConvTranspose3d(b, b, kernel, 2, half, output_padding=1, groups=b), nn.Conv3d(b, a, 1)) for a, b in pairs)
        self.decoder = nn.ModuleList(MedNextBlock(a, kernel) for a, _ in pairs)

    def forward(self, x):
        x, skips = self.stem(x), []
        for encode, down in zip(self.encoder, self.down):
            skips.append(encode(x))
            x = down(skips[-1])
        x = self.encoder[-1](x)
        for decode, up in zip(reversed(self.decoder), reversed(self.up)):
            x = decode(up(x) + skips.pop())
        return self.head(x)


IMAGE, SMALL_IMAGE, VOLUME = (1, 3, 256, 256), (1, 3, 224, 224), (1, 1, 64, 64, 64)
MAKERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "deeplabv3_mobilenet": (functools.partial(vision, "deeplabv3_mobilenet_v3_large"), IMAGE),
    "lraspp_mobilenet": (functools.partial(vision, "lraspp_mobilenet_v3_large"), IMAGE),
    "fcn_resnet50": (functools.partial(vision, "fcn_resnet50"), (1, 3, 160, 160)),
    "convnext_tiny": (functools.partial(backbone, "convnext_tiny"), SMALL_IMAGE),
    "swin_t": (functools.partial(backbone, "swin_t"), SMALL_IMAGE),
    "smp_unet_resnet34": (functools.partial(segmentation, "Unet", "resnet34"), IMAGE),
    "smp_unet_efficientnet": (functools.partial(segmentation, "Unet", "efficientnet-b0"), IMAGE),
    **{f"smp_{kind.lower()}_resnet18": (functools.partial(segmentation, kind, "resnet18"), IMAGE) for kind in ("UnetPlusPlus", "Linknet", "FPN", "MAnet", "DeepLabV3Plus", "PAN")},
    "smp_segformer_b0": (functools.partial(segmentation, "Segformer", "mit_b0"), IMAGE),
    "monai_unet": (functools.partial(monai, "UNet", 3, 1, 2, (16, 32, 64, 128, 256), (2, 2, 2, 2), num_res_units=2, norm="batch"), VOLUME),
    "monai_segresnet": (functools.partial(monai, "SegResNet", 3, 8, 1, 2, upsample_mode="deconv"), (1, 1, 48, 48, 48)),
    "monai_dynunet": (functools.partial(monai, "DynUNet", 3, 1, 2, [[3] * 3] * 4, [[1] * 3] + [[2] * 3] * 3, [[2] * 3] * 3, filters=[16, 32, 64, 128]), VOLUME),
    "monai_attention_unet": (functools.partial(monai, "AttentionUnet", 2, 1, 2, (32, 64, 128, 256), (2, 2, 2)), (1, 1, 256, 256)),
    "monai_vnet": (functools.partial(monai, "VNet", 3, 1, 2), (1, 1, 32, 32, 32)),
    "monai_swin_unetr": (functools.partial(monai, "SwinUNETR", in_channels=1, out_channels=2, feature_size=24), VOLUME),
    "mednext": (MedNext, (1, 1, 48, 48, 48)),
    "vae_decoder": (vae_decoder, (1, 4, 32, 32)),
    "tiny_vae_decoder": (tiny_vae_decoder, (1, 4, 32, 32)),
    "oobleck_decoder": (oobleck_decoder, (1, 64, 32)),
    "diffusion_unet": (denoiser, (1, 3, 64, 64)),
    "encodec_decoder": (encodec_decoder, (1, 128, 100)),
    "speecht5_hifigan": (speecht5_hifigan, (1, 50, 80)),
    "segformer": (segformer, IMAGE),
    "swin2sr": (swin2sr, (1, 3, 48, 48)),
    "dpt": (dpt, SMALL_IMAGE),
    "depth_anything": (depth_anything, SMALL_IMAGE),
    "vitpose": (vitpose, (1, 3, 256, 192)),
    "upernet": (upernet, SMALL_IMAGE),
    "sam_encoder": (sam_encoder, (1, 3, 512, 512)),
    "vits_decoder": (vits_decoder, (1, 96, 50)),
    "stylegan2": (StyleGan2, (1, 128)),
    "fastvit": (functools.partial(features, "fastvit_t8"), IMAGE),
    "hrnet": (functools.partial(features, "hrnet_w18_small"), (1, 3, 256, 192)),
    "smp_unet_mobileone": (functools.partial(segmentation, "Unet", "mobileone_s0"), IMAGE),
    "smp_unet_resnext50": (functools.partial(segmentation, "Unet", "resnext50_32x4d"), IMAGE),
    "smp_unet_regnet": (functools.partial(segmentation, "Unet", "tu-regnety_008"), IMAGE),
    "monai_unet_plus_plus": (functools.partial(monai, "BasicUNetPlusPlus", 2, 1, 2, features=(16, 16, 32, 64, 128, 16)), (1, 1, 192, 192)),
    "monai_unetr": (functools.partial(monai, "UNETR", 1, 2, VOLUME[2:], feature_size=16, hidden_size=192, mlp_dim=768, num_heads=4), VOLUME),
}

NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], dict[str, np.ndarray]]]] = {
    name: (made(make), inputs(x=shape)) for name, (make, shape) in MAKERS.items()
}
