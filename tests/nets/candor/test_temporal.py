"""The recurrent unit and the attention against PyTorch's own."""

import torch
from torch import nn

from candor.nets.candor.settings import ModelSettings
from candor.nets.candor.temporal import CausalAttention, Recurrence

SIZES = ModelSettings(nodes=3, history=8, horizon=4, patch_length=4, patch_stride=2, hidden=12, heads=3, dropout=0.0)


def test_steps_of_the_unit_are_those_of_pytorch_with_its_gradients() -> None:
    torch.manual_seed(0)
    ours, theirs = Recurrence(6).double(), nn.GRU(6, 6, batch_first=True).double()
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(ours, name).data.normal_()
        getattr(theirs, f"{name}_l0").data.copy_(getattr(ours, name))
    inputs = torch.randn(4, 5, 6, dtype=torch.float64, requires_grad=True)
    state, states = ours.begin(4), []
    for step in range(5):
        state = ours.step(inputs[:, step], state)
        states.append(state.T)
    found, (expected, _) = torch.stack(states, dim=1), theirs(inputs)
    torch.testing.assert_close(found, expected)
    direction = torch.randn_like(found)
    of_inputs = torch.autograd.grad((found * direction).sum(), [inputs, *ours.parameters()])
    theirs_too = torch.autograd.grad((expected * direction).sum(), [inputs, *theirs.parameters()])
    for one, other in zip(of_inputs, theirs_too, strict=True):
        torch.testing.assert_close(one, other)


def test_attention_step_by_step_is_causal_attention_at_once_with_its_gradients() -> None:
    torch.manual_seed(1)
    ours, theirs = CausalAttention(SIZES).double(), nn.MultiheadAttention(12, 3, batch_first=True).double()
    ours.in_weight.data.normal_()
    ours.in_bias.data.normal_()
    theirs.in_proj_weight.data.copy_(ours.in_weight)
    theirs.in_proj_bias.data.copy_(ours.in_bias)
    theirs.out_proj.load_state_dict(ours.out.state_dict())
    inputs = torch.randn(4, 6, 12, dtype=torch.float64, requires_grad=True)
    memory = ours.begin(6)
    found = torch.stack([ours.step(inputs[:, patch].T, memory) for patch in range(6)], dim=1)
    later = torch.ones(6, 6, dtype=torch.bool).triu(1)
    expected, _ = theirs(inputs, inputs, inputs, attn_mask=later, need_weights=False)
    torch.testing.assert_close(found, expected)
    # Every step alone and all together: gradients of earlier keys must wait for the steps that use them.
    for chosen in (slice(None), slice(5, 6), slice(0, 1), slice(2, 4)):
        direction = torch.randn_like(found[:, chosen])
        memory = ours.begin(6)
        again = torch.stack([ours.step(inputs[:, patch].T, memory) for patch in range(6)], dim=1)
        (one,) = torch.autograd.grad((again[:, chosen] * direction).sum(), inputs)
        (other,) = torch.autograd.grad((expected[:, chosen] * direction).sum(), inputs, retain_graph=True)
        torch.testing.assert_close(one, other)
