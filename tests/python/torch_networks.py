"""More whole networks of public packages, for PyTorch's door: generators, restorers, codecs, matting, promptable and text-prompted masks.

TORCH_NETWORKS: name → a function that makes a Family; it holds those of package_networks.py as well. A head stands here only
where its whole network cannot be built or exported, and then its name ends in _head or _decoder.
"""
from __future__ import annotations

import torch
from torch import nn

from networks import Family, trained_like
from package_networks import PACKAGE_NETWORKS, Part, family

TORCH_NETWORKS = dict(PACKAGE_NETWORKS)


def network(function):
    TORCH_NETWORKS[function.__name__] = function
    return function


def fed(module: nn.Module, inputs: dict, other: dict | None = None, gain: float = 1) -> Family:
    """A network of several inputs: the axes on which `inputs` and `other` differ are dynamic."""
    module = trained_like(module.eval(), 1)
    for layer in module.modules():
        if gain != 1 and isinstance(layer, nn.modules.conv._ConvNd):
            layer.weight.data *= gain
    other = other or inputs
    axes = {name: {axis: f"{name}{axis}" for axis, (a, b) in enumerate(zip(inputs[name].shape, other[name].shape)) if a != b} for name in inputs}
    return Family(module, inputs, axes, other)


def noise(*shape: int, seed: int = 2) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


class Prompted(nn.Module):
    """A network whose tensors are given by keyword; its result by attribute."""

    def __init__(self, module: nn.Module, names: tuple[str, ...], result: str, **fixed) -> None:
        super().__init__()
        self.module, self.names, self.result, self.fixed = module, names, result, fixed

    def forward(self, *inputs):
        return getattr(self.module(**dict(zip(self.names, inputs)), **self.fixed), self.result)


# ---- transformers, whole

@network
def transformers_sam():
    from transformers import SamConfig, SamModel

    config = SamConfig(vision_config=dict(hidden_size=32, output_channels=32, num_hidden_layers=2, num_attention_heads=2, image_size=64, patch_size=16, window_size=2,
                                          global_attn_indexes=[1], num_pos_feats=16),
                       prompt_encoder_config=dict(hidden_size=32, image_size=64, patch_size=16, mask_input_channels=8),
                       mask_decoder_config=dict(hidden_size=32, mlp_dim=64, num_attention_heads=2, iou_head_hidden_dim=16))
    return fed(Prompted(SamModel(config), ("pixel_values", "input_points"), "pred_masks"),
               {"x": noise(1, 3, 64, 64), "points": torch.rand(1, 1, 2, 2, generator=torch.Generator().manual_seed(1)) * 60})


@network
def transformers_clipseg():
    from transformers import CLIPSegConfig, CLIPSegForImageSegmentation

    config = CLIPSegConfig(vision_config=dict(hidden_size=32, intermediate_size=32, num_attention_heads=2, image_size=64, patch_size=16, num_hidden_layers=4),
                           text_config=dict(hidden_size=16, intermediate_size=16, num_attention_heads=2, num_hidden_layers=2, vocab_size=99, bos_token_id=0, eos_token_id=98),
                           projection_dim=16, reduce_dim=16, extract_layers=[1, 2], decoder_intermediate_size=32, decoder_num_attention_heads=2)
    ids = torch.arange(14).reshape(2, 7) * 5 % 97
    ids[:, -1] = 98
    return fed(Prompted(CLIPSegForImageSegmentation(config), ("pixel_values", "input_ids"), "logits"), {"x": noise(2, 3, 64, 64), "ids": ids})


@network
def transformers_vitmatte():
    from transformers import VitDetConfig, VitMatteConfig, VitMatteForImageMatting

    backbone = VitDetConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=64, num_channels=4, patch_size=16, out_features=["stage2"], pretrain_image_size=64)
    config = VitMatteConfig(backbone_config=backbone, hidden_size=32, convstream_hidden_sizes=[8, 12, 16], fusion_hidden_sizes=[32, 16, 12, 8])
    return family(Part(VitMatteForImageMatting(config), "alphas"), (1, 4, 64, 64), (2, 4, 64, 64))


def mask2former():
    from transformers import Mask2FormerConfig, SwinConfig

    return Mask2FormerConfig(backbone_config=SwinConfig(image_size=64, embed_dim=16, depths=[1, 1, 1, 1], num_heads=[1, 2, 2, 4], window_size=4,
                                                        out_features=["stage1", "stage2", "stage3", "stage4"]),
                             feature_size=32, mask_feature_size=32, hidden_dim=32, encoder_feedforward_dim=32, encoder_layers=1, decoder_layers=2, num_attention_heads=2,
                             dim_feedforward=32, num_queries=6)


@network
def transformers_mask2former():
    from transformers import Mask2FormerForUniversalSegmentation

    return family(Part(Mask2FormerForUniversalSegmentation(mask2former()), "masks_queries_logits"), (1, 3, 64, 64), (1, 3, 64, 64))


@network
def transformers_maskformer():
    from transformers import MaskFormerConfig, MaskFormerForInstanceSegmentation, SwinConfig

    backbone = SwinConfig(image_size=64, embed_dim=16, depths=[1, 1, 1, 1], num_heads=[1, 2, 2, 4], window_size=4, out_features=["stage1", "stage2", "stage3", "stage4"])
    config = MaskFormerConfig(backbone_config=backbone, fpn_feature_size=32, mask_feature_size=32,
                              decoder_config=dict(model_type="detr", d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
                                                  encoder_ffn_dim=32, decoder_ffn_dim=32, num_queries=5))
    return family(Part(MaskFormerForInstanceSegmentation(config), "masks_queries_logits"), (1, 3, 64, 64), (1, 3, 64, 64))


@network
def transformers_upernet():
    from transformers import ConvNextConfig, UperNetConfig, UperNetForSemanticSegmentation

    backbone = ConvNextConfig(hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], out_features=["stage1", "stage2", "stage3", "stage4"])
    return family(Part(UperNetForSemanticSegmentation(UperNetConfig(backbone_config=backbone, hidden_size=32, auxiliary_in_channels=16, num_labels=5)), "logits"),
                  (1, 3, 64, 64), (2, 3, 64, 64))


@network
def transformers_zoedepth():
    from transformers import BeitConfig, ZoeDepthConfig, ZoeDepthForDepthEstimation

    backbone = BeitConfig(hidden_size=32, num_hidden_layers=4, num_attention_heads=2, intermediate_size=32, image_size=64, patch_size=16, reshape_hidden_states=False,
                          out_features=["stage1", "stage2", "stage3", "stage4"], use_relative_position_bias=True)
    config = ZoeDepthConfig(backbone_config=backbone, neck_hidden_sizes=[8, 16, 16, 16], fusion_hidden_size=16, bottleneck_features=16, num_relative_features=8,
                            bin_embedding_dim=16, patch_transformer_hidden_size=32, patch_transformer_intermediate_size=32, patch_transformer_num_attention_heads=2,
                            backbone_hidden_size=32)
    return family(Part(ZoeDepthForDepthEstimation(config), "predicted_depth"), (1, 3, 64, 64), (1, 3, 64, 64))


@network
def transformers_glpn():
    from transformers import GLPNConfig, GLPNForDepthEstimation

    config = GLPNConfig(hidden_sizes=[8, 16, 16, 32], num_attention_heads=[1, 2, 2, 4], depths=[1, 1, 1, 1], decoder_hidden_size=16)
    return family(Part(GLPNForDepthEstimation(config), "predicted_depth"), (1, 3, 64, 64), (2, 3, 96, 64))


@network
def transformers_dac():
    from transformers import DacConfig, DacModel

    class Codec(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x).audio_values

    config = DacConfig(encoder_hidden_size=8, decoder_hidden_size=64, hidden_size=32, n_codebooks=2, codebook_size=32, codebook_dim=4)
    return family(Codec(DacModel(config)), (1, 1, 2048), (2, 1, 2048), gain=0.5)


@network
def transformers_vits_decoder():
    from transformers import VitsConfig
    from transformers.models.vits.modeling_vits import VitsHifiGan

    return family(VitsHifiGan(VitsConfig(flow_size=16, upsample_initial_channel=32)), (1, 16, 20), (2, 16, 31))


@network
def transformers_fastspeech2_hifigan():
    from transformers import FastSpeech2ConformerHifiGan, FastSpeech2ConformerHifiGanConfig

    return family(FastSpeech2ConformerHifiGan(FastSpeech2ConformerHifiGanConfig(upsample_initial_channel=32)), (2, 20, 80), (2, 33, 80))


@network
def transformers_superpoint_encoder_head():
    from transformers import SuperPointConfig
    from transformers.models.superpoint.modeling_superpoint import SuperPointEncoder

    class Encoded(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = SuperPointEncoder(SuperPointConfig(encoder_hidden_sizes=[16, 16, 32, 32]))

        def forward(self, x):
            out = self.encoder(x)
            return out[0] if isinstance(out, tuple) else out.last_hidden_state

    return family(Encoded(), (1, 1, 64, 64), (2, 1, 96, 64))


# ---- diffusers, whole

@network
def diffusers_autoencoder_kl():
    from diffusers import AutoencoderKL

    blocks = dict(down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)
    return family(Part(AutoencoderKL(block_out_channels=(16, 32), latent_channels=4, norm_num_groups=8, **blocks), "sample"), (1, 3, 32, 32), (2, 3, 48, 32))


@network
def diffusers_unet_conditioned():
    from diffusers import UNet2DConditionModel

    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.unet = UNet2DConditionModel(sample_size=16, block_out_channels=(16, 32), down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
                                             up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), norm_num_groups=8, cross_attention_dim=16, attention_head_dim=8, layers_per_block=1)

        def forward(self, x, text):
            return self.unet(x, 9, text).sample

    return fed(Step(), {"x": noise(1, 4, 16, 16), "text": noise(1, 5, 16)}, {"x": noise(1, 4, 16, 16), "text": noise(1, 9, 16)})


@network
def diffusers_vq():
    from diffusers import VQModel

    return family(Part(VQModel(block_out_channels=(16, 32), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=8,
                               num_vq_embeddings=32), "sample"), (1, 3, 32, 32), (2, 3, 48, 32))


# ---- spandrel: super-resolution and restoration

@network
def spandrel_esrgan():
    from spandrel.architectures.ESRGAN.__arch.RRDB import RRDBNet

    return family(RRDBNet(scale=4, num_filters=16, num_blocks=2), (1, 3, 16, 16), (2, 3, 24, 16), gain=0.5)


@network
def spandrel_compact():
    from spandrel.architectures.Compact.__arch.SRVGG import SRVGGNetCompact

    return family(SRVGGNetCompact(num_feat=16, num_conv=4, upscale=4), (1, 3, 16, 16), (2, 3, 24, 16))


@network
def spandrel_swinir():
    from spandrel.architectures.SwinIR.__arch.SwinIR import SwinIR

    return family(SwinIR(img_size=16, window_size=8, img_range=1.0, depths=[2], embed_dim=16, num_heads=[2], mlp_ratio=2, upscale=2, upsampler="nearest+conv", resi_connection="1conv"),
                  (1, 3, 16, 16), (2, 3, 16, 16))


@network
def spandrel_omnisr():
    from spandrel.architectures.OmniSR.__arch.OmniSR import OmniSR

    return family(OmniSR(num_in_ch=3, num_out_ch=3, num_feat=16, res_num=1, block_num=1, window_size=8, up_scale=2, pe=True, bias=True), (1, 3, 16, 16), (2, 3, 16, 16))


@network
def spandrel_nafnet():
    from spandrel.architectures.NAFNet.__arch.NAFNet_arch import NAFNet

    return family(NAFNet(img_channel=3, width=8, middle_blk_num=1, enc_blk_nums=[1, 1], dec_blk_nums=[1, 1]), (1, 3, 32, 32), (2, 3, 48, 32))


@network
def spandrel_scunet():
    from spandrel.architectures.SCUNet.__arch.SCUNet import SCUNet

    return family(SCUNet(config=[1, 1, 1, 1, 1, 1, 1], dim=64, input_resolution=64), (1, 3, 64, 64), (2, 3, 64, 64))


@network
def spandrel_drunet():
    from spandrel.architectures.DRUNet.__arch.network_unet import DRUNet

    return family(DRUNet(in_nc=4, out_nc=3, nc=[8, 8, 16, 16], nb=1), (1, 4, 32, 32), (2, 4, 48, 32))


@network
def spandrel_realcugan():
    from spandrel.architectures.RealCUGAN.__arch.upcunet_v3 import UpCunet2x

    return family(UpCunet2x(), (1, 3, 48, 48), (1, 3, 64, 48))


@network
def spandrel_fbcnn():
    from spandrel.architectures.FBCNN.__arch.FBCNN import FBCNN

    return family(Part(FBCNN(nb=1), 0), (1, 3, 32, 32), (2, 3, 48, 32))


@network
def spandrel_plksr():
    from spandrel.architectures.PLKSR.__arch.PLKSR import PLKSR

    return family(PLKSR(dim=16, n_blocks=2, upscaling_factor=4), (1, 3, 16, 16), (2, 3, 24, 16))


@network
def spandrel_lama():
    from spandrel.architectures.LaMa.__arch.LaMa import LaMa

    return fed(LaMa(in_nc=4, out_nc=3), {"x": torch.rand(1, 3, 32, 32), "mask": (noise(1, 1, 32, 32) > 0).float()}, gain=0.4)


# ---- segmentation-models, other decoders

def segmentation(name: str, size=(64, 64), **options) -> Family:
    import segmentation_models_pytorch

    return family(getattr(segmentation_models_pytorch, name)(encoder_weights=None, classes=3, **options), (1, 3, *size), (2, 3, size[0] + 32, size[1]))


TORCH_NETWORKS["smp_pspnet"] = lambda: segmentation("PSPNet", encoder_name="resnet18")
TORCH_NETWORKS["smp_pan"] = lambda: segmentation("PAN", (128, 128), encoder_name="resnet18")
TORCH_NETWORKS["smp_upernet"] = lambda: segmentation("UPerNet", encoder_name="resnet18")
TORCH_NETWORKS["smp_unet_scse_mobilenet"] = lambda: segmentation("Unet", encoder_name="mobilenet_v2", decoder_attention_type="scse")

# ---- MONAI, more

@network
def monai_basic_unet():
    from monai.networks import nets

    return family(nets.BasicUNet(3, 1, 2, (8, 8, 16, 16, 32, 8), upsample="deconv"), (1, 1, 32, 32, 32), (2, 1, 48, 32, 32))


@network
def monai_flexible_unet():
    from monai.networks import nets

    return family(nets.FlexibleUNet(3, 2, "efficientnet-b0", spatial_dims=2, upsample="deconv"), (1, 3, 64, 64), (2, 3, 96, 64))


@network
def monai_varautoencoder():
    from monai.networks import nets

    class Mean(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nets.VarAutoEncoder(2, (1, 32, 32), 1, 8, (8, 16), (2, 2))

        def forward(self, x):
            return self.net.decode_forward(self.net.encode_forward(x)[1])

    return family(Mean(), (1, 1, 32, 32), (3, 1, 32, 32))


@network
def monai_generator():
    from monai.networks import nets

    return family(nets.Generator(12, (16, 4, 4), (16, 8, 1), (2, 2, 2), num_res_units=2), (1, 12), (3, 12))


# ---- torchvision, more

@network
def torchvision_keypoint_head():
    from torchvision.models.detection.keypoint_rcnn import KeypointRCNNHeads, KeypointRCNNPredictor

    return family(nn.Sequential(KeypointRCNNHeads(32, (32, 32)), KeypointRCNNPredictor(32, 5)), (4, 32, 14, 14), (9, 32, 14, 14))


@network
def torchvision_raft():
    import torchvision

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.raft = torchvision.models.optical_flow.raft_small(weights=None)

        def forward(self, a, b):
            return self.raft(a, b, num_flow_updates=2)[-1]

    return fed(Flow(), {"x": torch.rand(1, 3, 128, 128), "y": torch.rand(1, 3, 128, 128)})


# ---- codecs and key points of packages of their own

@network
def snac_codec_decoder():
    from snac import SNAC

    codec = SNAC(encoder_dim=8, encoder_rates=[2, 4], decoder_dim=32, decoder_rates=[4, 2], latent_dim=32, attn_window_size=None, codebook_size=32, codebook_dim=4, vq_strides=[2, 1],
                 noise=False, depthwise=True)
    return family(codec.decoder, (1, 32, 24), (2, 32, 40))


@network
def kornia_dexined():
    from kornia.models.dexined import DexiNed

    return family(Part(DexiNed(pretrained=False), -1), (1, 3, 64, 64), (2, 3, 96, 64))


@network
def kornia_sosnet():
    from kornia.feature import SOSNet

    return family(SOSNet(pretrained=False), (2, 1, 32, 32), (5, 1, 32, 32))


@network
def kornia_disk_unet():
    from kornia.feature.disk._unets import Unet

    return family(Unet(in_features=3, size=5, down=[8, 16, 16], up=[16, 17]), (1, 3, 64, 64), (2, 3, 96, 64))
