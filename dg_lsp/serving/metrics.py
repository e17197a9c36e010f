"""The metrics of a team's server, for Prometheus. Needs prometheus_client, the extra `server`."""

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from dg_lsp.serving.service import Service
from dg_lsp.text.messages import Draft, Fill

_SECONDS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Metrics:
    """The counts of one Service. Names of users and documents are in none of them."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._fills = Counter(
            "dg_lsp_fills", "Fills by why they stopped", ["reason"], registry=self._registry
        )
        self._first = Histogram(
            "dg_lsp_first_draft_seconds",
            "Seconds from a request to its first draft",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._refused = Counter("dg_lsp_refused", "Refused requests", ["code"], registry=self._registry)

    def follow(self, service: Service) -> None:
        """Read from now on what `service` says of itself, whenever somebody asks."""
        self._registry.register(_Collector(service))

    def count(self, event: Draft | Fill, seconds: float) -> None:
        """Count the first Draft, or the Fill, of a request that came `seconds` ago."""
        if isinstance(event, Fill):
            self._fills.labels(event.reason).inc()
        else:
            self._first.observe(seconds)

    def refused(self, code: int) -> None:
        """Count a request that was answered with the HTTP status `code`."""
        self._refused.labels(str(code)).inc()

    def text(self) -> bytes:
        """Return all counts in Prometheus' text format."""
        return generate_latest(self._registry)


class _Collector:
    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Any]:
        status = self._service.status()
        loaded = status.state in ("ready", "busy", "slow")
        yield GaugeMetricFamily("dg_lsp_loaded", "1 once the checkpoint is loaded", int(loaded))
        yield GaugeMetricFamily("dg_lsp_queue", "Fills that wait for their turn", status.queue)
        yield GaugeMetricFamily("dg_lsp_memory_bytes", "Bytes that the model holds", status.memory)
        yield CounterMetricFamily("dg_lsp_steps", "Steps of denoising, and encoded chunks", status.passes)
        yield CounterMetricFamily(
            "dg_lsp_prefix_hits", "Fills whose document was still encoded from before", self._service.hits
        )
