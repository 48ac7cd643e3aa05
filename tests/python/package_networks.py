"""Whole networks of public packages with random weights: segmentation, super-resolution, generators, codecs, vocoders, depth, 3-D.

PACKAGE_NETWORKS: name → a function that makes a Family. Sizes of the networks are cut down by their own configuration, never their
kinds of layers. The packages are in requirements/networks.txt.
"""
from __future__ import annotations

import torch
from torch import nn

from networks import Family, trained_like

PACKAGE_NETWORKS = {}


def network(function):
    PACKAGE_NETWORKS[function.__name__] = function
    return function


class Part(nn.Module):
    """One result of one method of a module, by attribute or position."""

    def __init__(self, module: nn.Module, result: str | int | None = None, method: str = "forward", **fixed) -> None:
        super().__init__()
        self.module, self.result, self.method, self.fixed = module, result, method, fixed

    def forward(self, *inputs):
        out = getattr(self.module, self.method)(*inputs, **self.fixed)
        if isinstance(self.result, str):
            return out[self.result] if isinstance(out, dict) else getattr(out, self.result)
        return out if self.result is None else out[self.result]


def family(module: nn.Module, shape: tuple[int, ...], other: tuple[int, ...], keep: tuple[int, ...] = (), gain: float = 1) -> Family:
    """Every axis on which the two shapes differ is dynamic; `keep` fixes axes although they differ. `gain` of every convolution: below
    1 for networks whose residual branches add up unnormalised, so that activations stay near 1, as trained ones do."""
    module = trained_like(module.eval(), 1)
    for layer in module.modules():
        if gain != 1 and isinstance(layer, nn.modules.conv._ConvNd):
            layer.weight.data *= gain
    generator = torch.Generator().manual_seed(2)
    axes = {axis: f"s{axis}" for axis, (a, b) in enumerate(zip(shape, other)) if a != b and axis not in keep}
    return Family(module, {"x": torch.randn(shape, generator=generator)}, {"x": axes}, {"x": torch.randn(other, generator=generator)})


# ---- torchvision

def vision(name: str, shape=(1, 3, 64, 64), other=(2, 3, 96, 64)):
    import torchvision

    return family(Part(getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None, num_classes=5), "out"), shape, other)


@network
def torchvision_fcn_resnet50():
    return vision("fcn_resnet50")


@network
def torchvision_deeplabv3_mobilenet():
    return vision("deeplabv3_mobilenet_v3_large", (2, 3, 64, 64), (1, 3, 96, 64))


@network
def torchvision_lraspp():
    return vision("lraspp_mobilenet_v3_large")


@network
def torchvision_swin():
    import torchvision

    return family(torchvision.models.SwinTransformer([4, 4], 24, [2, 2], [2, 4], [7, 7], num_classes=7).features, (1, 3, 56, 56), (3, 3, 56, 56))


@network
def torchvision_convnext():
    import torchvision
    from torchvision.models.convnext import CNBlockConfig

    return family(torchvision.models.ConvNeXt([CNBlockConfig(16, 32, 1), CNBlockConfig(32, None, 1)], num_classes=7).features, (1, 3, 48, 48), (2, 3, 64, 48))


@network
def torchvision_mask_head():
    from torchvision.models.detection.mask_rcnn import MaskRCNNHeads, MaskRCNNPredictor

    return family(nn.Sequential(MaskRCNNHeads(32, (32, 32), 1), MaskRCNNPredictor(32, 32, 5)), (4, 32, 14, 14), (9, 32, 14, 14))


# ---- segmentation-models-pytorch

def segmentation(name: str, **options):
    import segmentation_models_pytorch

    return family(getattr(segmentation_models_pytorch, name)(encoder_weights=None, classes=3, **options), (1, 3, 64, 64), (2, 3, 96, 64))


for kind in ("Unet", "UnetPlusPlus", "Linknet", "FPN", "MAnet", "DeepLabV3Plus"):
    PACKAGE_NETWORKS[f"smp_{kind.lower()}"] = lambda kind=kind: segmentation(kind, encoder_name="resnet18")
PACKAGE_NETWORKS["smp_segformer"] = lambda: segmentation("Segformer", encoder_name="mit_b0")

# ---- MONAI


@network
def monai_unet():
    from monai.networks import nets

    return family(nets.UNet(3, 1, 2, (8, 16, 32), (2, 2), num_res_units=2, norm="batch"), (1, 1, 16, 16, 16), (2, 1, 24, 16, 32))


@network
def monai_segresnet_deconv():
    from monai.networks import nets

    return family(nets.SegResNet(3, 8, 1, 2, upsample_mode="deconv"), (1, 1, 16, 16, 16), (2, 1, 24, 16, 16))


@network
def monai_dynunet():
    from monai.networks import nets

    return family(nets.DynUNet(3, 1, 2, [[3, 3, 3]] * 3, [[1, 1, 1], [1, 2, 2], [2, 2, 2]], [[1, 2, 2], [2, 2, 2]], filters=[8, 16, 32]), (1, 1, 16, 16, 16), (1, 1, 16, 32, 24))


@network
def monai_attention_unet():
    from monai.networks import nets

    return family(nets.AttentionUnet(2, 1, 2, (8, 16, 32), (2, 2)), (1, 1, 32, 32), (2, 1, 48, 32))


@network
def monai_vnet():
    from monai.networks import nets

    return family(nets.VNet(3, 1, 2), (1, 1, 16, 16, 16), (1, 1, 32, 16, 16))


@network
def monai_unetr():
    from monai.networks import nets

    return family(nets.UNETR(1, 2, (32, 32, 32), 8, 48, 96, 4), (1, 1, 32, 32, 32), (2, 1, 32, 32, 32))


@network
def monai_swin_unetr():
    from monai.networks import nets

    return family(nets.SwinUNETR(in_channels=1, out_channels=2, feature_size=12), (1, 1, 64, 64, 64), (2, 1, 64, 64, 64))


@network
def monai_basic_unet_plus_plus():
    from monai.networks import nets

    return family(Part(nets.BasicUNetPlusPlus(2, 1, 2, (8, 8, 16, 16, 32, 8)), 0), (1, 1, 32, 32), (2, 1, 48, 32))


@network
def monai_autoencoder():
    from monai.networks import nets

    return family(nets.AutoEncoder(2, 1, 1, (8, 16, 32), (2, 2, 2)), (1, 1, 32, 32), (2, 1, 48, 32))


# ---- diffusers

@network
def diffusers_vae_decoder():
    from diffusers import AutoencoderKL

    blocks = dict(down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)
    return family(AutoencoderKL(block_out_channels=(16, 32), latent_channels=4, norm_num_groups=8, **blocks).decoder, (1, 4, 12, 12), (2, 4, 16, 12))


@network
def diffusers_tiny_vae_decoder():
    from diffusers import AutoencoderTiny

    return family(AutoencoderTiny(encoder_block_out_channels=(16,) * 4, decoder_block_out_channels=(16,) * 4).decoder, (1, 4, 8, 8), (2, 4, 12, 8))


@network
def diffusers_oobleck_decoder():
    from diffusers import AutoencoderOobleck

    vae = AutoencoderOobleck(encoder_hidden_size=16, downsampling_ratios=[2, 4, 4], channel_multiples=[1, 2, 4], decoder_channels=16, decoder_input_channels=16)
    return family(vae.decoder, (1, 16, 20), (2, 16, 33))


@network
def diffusers_unet():
    from diffusers import UNet2DModel

    unet = UNet2DModel(sample_size=16, block_out_channels=(16, 32), down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
                       norm_num_groups=8, attention_head_dim=8)
    return family(Part(unet, "sample", timestep=7), (1, 3, 16, 16), (2, 3, 24, 16))


# ---- transformers

@network
def transformers_encodec_decoder():
    from transformers import EncodecConfig, EncodecModel

    return family(EncodecModel(EncodecConfig(num_filters=8, hidden_size=32, codebook_dim=32)).decoder, (1, 32, 20), (2, 32, 31))


@network
def transformers_dac_decoder():
    from transformers import DacConfig, DacModel

    return family(DacModel(DacConfig(decoder_hidden_size=64, hidden_size=32, encoder_hidden_size=8)).decoder, (1, 32, 12), (2, 32, 17), gain=0.5)


@network
def transformers_mimi_decoder():
    from transformers import MimiConfig, MimiModel

    config = MimiConfig(num_filters=8, hidden_size=64, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, intermediate_size=64, upsample_groups=64)
    return family(Part(MimiModel(config).decoder, "audio_values"), (1, 64, 10), (2, 64, 15))


@network
def transformers_speecht5_hifigan():
    from transformers import SpeechT5HifiGan, SpeechT5HifiGanConfig

    return family(SpeechT5HifiGan(SpeechT5HifiGanConfig(upsample_initial_channel=32)), (2, 20, 80), (2, 33, 80))


@network
def transformers_univnet():
    from transformers import UnivNetConfig, UnivNetModel

    class Fed(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x, noise_sequence=torch.sin(x[..., :8]))[0]

    config = UnivNetConfig(model_in_channels=8, model_hidden_channels=8, num_mel_bins=20, resblock_kernel_sizes=[3], resblock_stride_sizes=[4], resblock_dilation_sizes=[[1, 3]],
                           kernel_predictor_hidden_channels=8, kernel_predictor_num_blocks=1)
    return family(Fed(UnivNetModel(config)), (2, 12, 20), (2, 12, 20))


@network
def transformers_segformer():
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(hidden_sizes=[8, 16, 16, 32], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=32, depths=[1, 1, 1, 1])
    return family(Part(SegformerForSemanticSegmentation(config), "logits"), (1, 3, 64, 64), (2, 3, 96, 64))


@network
def transformers_swin2sr():
    from transformers import Swin2SRConfig, Swin2SRForImageSuperResolution

    config = Swin2SRConfig(embed_dim=16, depths=[2], num_heads=[2], window_size=8, image_size=16)
    return family(Part(Swin2SRForImageSuperResolution(config), "reconstruction"), (1, 3, 16, 16), (2, 3, 16, 16))


@network
def transformers_dpt():
    from transformers import DPTConfig, DPTForDepthEstimation

    config = DPTConfig(hidden_size=32, num_hidden_layers=4, num_attention_heads=4, intermediate_size=64, image_size=64, backbone_out_indices=[0, 1, 2, 3],
                       neck_hidden_sizes=[8, 16, 16, 16], fusion_hidden_size=16)
    return family(Part(DPTForDepthEstimation(config), "predicted_depth"), (1, 3, 64, 64), (2, 3, 64, 64))


@network
def transformers_depth_anything():
    from transformers import DepthAnythingConfig, DepthAnythingForDepthEstimation, Dinov2Config

    backbone = Dinov2Config(hidden_size=32, num_hidden_layers=4, num_attention_heads=2, image_size=56, patch_size=14, out_features=["stage1", "stage2", "stage3", "stage4"],
                            reshape_hidden_states=False)
    config = DepthAnythingConfig(backbone_config=backbone, reassemble_hidden_size=32, neck_hidden_sizes=[8, 16, 16, 16], fusion_hidden_size=16, head_hidden_size=8, patch_size=14)
    return family(Part(DepthAnythingForDepthEstimation(config), "predicted_depth"), (1, 3, 56, 56), (2, 3, 56, 56))


@network
def transformers_vitpose():
    from transformers import VitPoseBackboneConfig, VitPoseConfig, VitPoseForPoseEstimation

    backbone = VitPoseBackboneConfig(image_size=[64, 48], patch_size=[16, 16], hidden_size=32, num_hidden_layers=2, num_attention_heads=2, out_features=["stage2"])
    return family(Part(VitPoseForPoseEstimation(VitPoseConfig(backbone_config=backbone, use_simple_decoder=False)), "heatmaps"), (1, 3, 64, 48), (3, 3, 64, 48))


@network
def transformers_sam_mask_decoder():
    from transformers.models.sam.configuration_sam import SamMaskDecoderConfig
    from transformers.models.sam.modeling_sam import SamMaskDecoder

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            config = SamMaskDecoderConfig(hidden_size=32, mlp_dim=64, num_hidden_layers=2, num_attention_heads=2, iou_head_hidden_dim=16)
            config._attn_implementation = "eager"
            self.decoder = SamMaskDecoder(config)
            self.register_buffer("sparse", torch.randn(1, 2, 3, 32, generator=torch.Generator().manual_seed(3)))

        def forward(self, x):
            place = torch.sin(x)
            return self.decoder(x, place, self.sparse.to(x.dtype).expand(x.shape[0], -1, -1, -1), torch.cos(x), True)[0]

    return family(Decoder(), (1, 32, 12, 12), (1, 32, 12, 12))


@network
def transformers_clipseg_decoder():
    from transformers import CLIPSegConfig
    from transformers.models.clipseg.modeling_clipseg import CLIPSegDecoder

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            vision = dict(hidden_size=32, intermediate_size=32, num_attention_heads=2, image_size=64, patch_size=16, num_hidden_layers=4)
            config = CLIPSegConfig(vision_config=vision, projection_dim=16, reduce_dim=16, extract_layers=[1, 2], decoder_intermediate_size=32, decoder_num_attention_heads=2,
                                   text_config=dict(hidden_size=16, intermediate_size=16, num_attention_heads=2, num_hidden_layers=1))
            self.decoder = CLIPSegDecoder(config)

        def forward(self, x):
            return self.decoder((x, torch.tanh(x)), torch.sin(x[:, 0, :16]))[0]

    return family(Decoder(), (1, 17, 32), (3, 17, 32))
