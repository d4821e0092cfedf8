"""A worker whose process has too much to do takes no more sessions until that is over."""

from __future__ import annotations

import orjson
import pytest
from prometheus_client import REGISTRY

from context_builder.fleet.process import LOOKS, Workload, WorkloadMeter


def noted(meter: WorkloadMeter, lag: float, cpu: float, looks: int = LOOKS) -> bool:
    for _ in range(looks):
        meter.note(lag, cpu)
    return meter.now.overloaded


def test_a_loop_that_is_late_or_uses_all_of_its_core_is_overloaded() -> None:
    assert not noted(WorkloadMeter(), 0.1, 0.9)
    assert noted(WorkloadMeter(), 0.3, 0.1)
    assert noted(WorkloadMeter(), 0.0, 0.99)


def test_a_wave_of_sessions_that_start_is_no_overload() -> None:
    assert not noted(WorkloadMeter(), 1.0, 1.0, looks=LOOKS - 1)
    meter = WorkloadMeter()
    noted(meter, 0.0, 0.2)
    assert not noted(meter, 0.05, 1.0, looks=LOOKS // 2)


def test_it_takes_sessions_again_once_it_is_well_below_the_limits() -> None:
    meter = WorkloadMeter()
    assert noted(meter, 0.0, 1.0)
    assert noted(meter, 0.0, 0.9)
    assert not noted(meter, 0.0, 0.7)
    assert meter.now.as_json() == {"lag": 0.0, "cpu": 0.7, "overloaded": False}


@pytest.mark.parametrize("told", [b"", b"{", b"[]", b"3", b'{"lag":"x","cpu":1,"overloaded":true}', b'{"lag":1}', None])
def test_what_no_worker_published_is_no_load(told: bytes | None) -> None:
    assert Workload.read(told) == Workload()


def test_what_a_worker_publishes_is_read_again() -> None:
    busy = Workload(0.3, 0.99, overloaded=True)
    assert Workload.read(orjson.dumps(busy.as_json())) == busy


def test_metrics_tell_of_it() -> None:
    meter = WorkloadMeter()
    noted(meter, 0.5, 0.1)
    assert REGISTRY.get_sample_value("context_builder_loop_lag_seconds") == 0.5
    assert REGISTRY.get_sample_value("context_builder_overloaded") == 1.0
    noted(meter, 0.0, 0.1)
    assert REGISTRY.get_sample_value("context_builder_overloaded") == 0.0
