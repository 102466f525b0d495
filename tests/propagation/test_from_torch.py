"""Pipelines from torch modules: sites by hooks, interventions, resumed runs. Skipped where torch is not installed."""

import sys

import numpy as np
import pytest

import workbench as wb
from workbench.propagation import BitFlip, Noise, campaign, from_torch, protected, trace


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(wb.WorkbenchError, match=r"needs torch, which is not installed: pip install 'lossbench\[llm\]'"):
        from_torch(None, np.ones(3))


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="needs the llm extra")


@pytest.fixture
def block(torch):
    """Two layers with a residual connection, of which one module is called twice, and one returns a tuple."""

    class Twice(torch.nn.Module):
        def forward(self, x):
            return x * 2, "and more"

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(6, 12), torch.nn.Linear(12, 6)
            self.act, self.twice = torch.nn.GELU(), Twice()

        def forward(self, x):
            h = self.down(self.act(self.up(x)))
            return self.act(x + self.twice(h)[0])

    torch.manual_seed(0)
    return Block().eval()


def example():
    return np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)


def test_modules_are_sites_in_the_order_of_computation(block):
    pipeline = from_torch(block, example())
    assert pipeline.sites == ["input", "up", "act", "down", "twice", "act (2)", "output"]
    run = pipeline.run(example())
    np.testing.assert_array_equal(run["twice"], 2 * run["down"])
    np.testing.assert_array_equal(run["output"], run["act (2)"])
    assert not any(module._forward_hooks for module in block.modules())


def test_a_resumed_run_is_that_of_a_whole_run(block):
    pipeline = from_torch(block, example())
    run = pipeline.run(example())
    for site in pipeline.sites[:-1]:
        flip = BitFlip(site, bit=28, index=3)
        resumed = pipeline.perturbed(run, flip)
        whole = pipeline.run(example(), at=pipeline.interventions([flip], 0, 0))
        for name in pipeline.sites:
            np.testing.assert_array_equal(resumed[name], whole[name])
        assert not np.array_equal(resumed["output"], run["output"])
        if site == "down":
            assert "up" not in resumed.computed
    np.testing.assert_array_equal(pipeline.run(example())["output"], run["output"])
    assert "forward" not in vars(block.up)


def test_first_order_agrees_with_the_measured_error(block):
    pipeline = from_torch(block, example())
    found = trace(pipeline, example(), Noise("down", 1e-3, unit="rms"))
    for each in found.stages:
        assert each.ratio == pytest.approx(1, abs=0.02)
    assert found["output"].badge == "linear"
    assert [each.site for each in found.stages] == ["down", "twice", "act (2)", "output"]


def test_a_module_with_dropout_is_refused_in_training(torch):
    module = torch.nn.Sequential(torch.nn.Linear(6, 64), torch.nn.Dropout(0.5)).train()
    with pytest.raises(wb.WorkbenchError, match=r"must return the same for the same input.*module.eval"):
        trace(from_torch(module, example()), example(), BitFlip("0"))


def test_brain_floats_are_flipped_in_their_own_bits(torch):
    module = torch.nn.Linear(6, 6, dtype=torch.bfloat16)
    pipeline = from_torch(module, torch.ones(2, 6, dtype=torch.bfloat16))
    run = pipeline.run(torch.ones(2, 6, dtype=torch.bfloat16))
    assert run["output"].dtype == np.float32
    flipped = pipeline.perturbed(run, BitFlip("output", bit=15, index=0, format="bfloat16"))
    assert flipped["output"][0, 0] == -run["output"][0, 0]


def test_a_campaign_runs_on_a_module(block):
    pipeline = from_torch(block, example())
    flips = [BitFlip("up", bit="exponent"), BitFlip("down", bit="mantissa")]
    one, two = (campaign(pipeline, example(), flips, until=40, workers=workers) for workers in (1, 3))
    assert one.trials == two.trials
    assert sum(one.counts[1].values()) == 20


def test_other_things_are_refused(torch, block):
    with pytest.raises(wb.WorkbenchError, match=r"needs a torch\.nn\.Module; got int"):
        from_torch(3, example())
    pipeline = from_torch(block, example())
    with pytest.raises(wb.WorkbenchError, match="there is no site 'dwon'; the nearest names are: down"):
        pipeline.perturbed(pipeline.run(example()), BitFlip("dwon"))


def test_sites_of_a_module_are_protected_by_guards(block):
    x = example()
    pipeline = from_torch(block, x)
    run = pipeline.run(x)
    safe = protected(pipeline, run, ["range", "finite"])
    again = safe.run(x)
    assert all(again[site].tobytes() == run[site].tobytes() for site in pipeline.sites)
    assert all(found.clean for found in again.findings.values())
    site = "up"
    flip = BitFlip(site, bit="exponent_top", index=0)
    bare, held = pipeline.perturbed(run, flip), safe.perturbed(again, flip)
    assert abs(held["output"] - run["output"]).max() < abs(bare["output"] - run["output"]).max()
    assert held.findings[site].detected == 1
    with pytest.raises(wb.WorkbenchError, match="there is none for up"):
        protected(pipeline, run, "twice", sites=["up"])
    assert campaign(safe, x, [BitFlip(site, bit="exponent_top")], until=8, isolate=60, workers=1).complete
