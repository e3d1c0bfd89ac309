"""STAEformer: parameters counted by hand, PyTorch's own transformer layer, and sensors with a free embedding."""

import pytest
import torch
from frames import calendar, frame, metr_la_frame, parameters
from torch import nn

from candor.core.errors import InputError
from candor.core.settings import parse_settings
from candor.nets.baselines.staeformer import Staeformer, StaeformerSizes, TransformerLayer


def test_it_has_the_parameters_counted_by_hand() -> None:
    width = 24 + 24 + 24 + 80
    embeddings = (3 * 24 + 24) + 288 * 24 + 7 * 24 + 12 * 207 * 80
    attention, feed_forward, norms = 4 * (width + 1) * width, (width + 1) * 256 + (256 + 1) * width, 2 * 2 * width
    head = (12 * width + 1) * 12
    counted = embeddings + (3 + 3) * (attention + feed_forward + norms) + head
    assert parameters(Staeformer(StaeformerSizes(), metr_la_frame())) == counted == 1_258_980


def test_a_layer_is_the_transformer_layer_of_pytorch() -> None:
    torch.manual_seed(0)
    layer = TransformerLayer(StaeformerSizes()).eval()
    known = nn.TransformerEncoderLayer(152, 4, 256, dropout=0.0, batch_first=True).eval()
    with torch.no_grad():
        inward = (layer.query, layer.key, layer.value)
        known.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in inward]))
        known.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in inward]))
    pairs = (
        (known.self_attn.out_proj, layer.out),
        (known.linear1, layer.first),
        (known.linear2, layer.second),
        (known.norm1, layer.attention_norm),
        (known.norm2, layer.feed_forward_norm),
    )
    for theirs, ours in pairs:
        theirs.load_state_dict(ours.state_dict())
    states = torch.randn(2, 3, 7, 152)
    torch.testing.assert_close(layer(states), known(states.flatten(0, 1)).view_as(states), rtol=1e-4, atol=1e-5)


def test_sensors_differ_by_their_readings_and_their_free_embedding_only() -> None:
    torch.manual_seed(0)
    network = Staeformer(StaeformerSizes(), frame(5, 12, 6)).eval()
    values, order = torch.randn(2, 12, 5), torch.tensor([3, 0, 4, 1, 2])
    with torch.no_grad():
        before = network(values, *calendar(2, 18))
        only_readings = network(values[:, :, order], *calendar(2, 18))
        network.adaptive.copy_(network.adaptive[:, order].clone())
        both = network(values[:, :, order], *calendar(2, 18))
    torch.testing.assert_close(both, before[:, :, order], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(only_readings, before[:, :, order], rtol=1e-2, atol=1e-2)


def test_heads_that_cannot_share_the_width_are_refused() -> None:
    with pytest.raises(InputError, match="multiple of heads"):
        parse_settings(StaeformerSizes, {"heads": 5}, "sizes")
