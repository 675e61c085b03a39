"""`weir trace`: what it prints of a trace, and what it refuses."""
import json
import pathlib
import struct
import sys

from installed_weir import WeirTestCase

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "trace"))
import wtr  # noqa: E402

KIND = {name: number for number, name in enumerate(wtr.KINDS)}
MIB = 1 << 20


def record(time, kind, *, address=0, amount=0, number=0, detail=0, thread=1) -> bytes:
    return wtr.RECORD.pack(time, address, amount, number, thread, KIND[kind], detail)


def text(number: int, name: str) -> bytes:
    return struct.pack("<IH", number, len(name.encode())) + name.encode()


def sample() -> bytes:
    """A forward of one op on a parameter of 2 MiB, which makes 6 MiB; 1 MiB is evicted, and a wait of 3 ms."""
    records = [
        record(1000, "thread", amount=99),
        record(1000, "allocate", address=0x1000, amount=2 * MIB),
        record(2000, "op begin", number=1, amount=1),
        record(2000, "tensor", address=0x1000, amount=2 * MIB, detail=wtr.LEAF),
        record(3000, "allocate", address=0x900000, amount=6 * MIB),
        record(2_002_000, "op end", number=1, amount=1),
        record(2_002_000, "tensor", address=0x900000, amount=6 * MIB, detail=wtr.RESULT | wtr.DERIVED),
        record(2_003_000, "evict", address=0x1000, amount=MIB),
        record(5_003_000, "wait", amount=3_000_000, detail=1),
        record(5_004_000, "free", address=0x900000),
        record(5_005_000, "end"),
    ]
    return wtr.header(rank=b"3", host=b"node\x1b[7m") + wtr.frame(text(1, "aten::m\x1bm"), b"".join(records))


class TraceTest(WeirTestCase):
    def trace(self, data: bytes, *flags):
        (self.folder / "t.wtr").write_bytes(data)
        return self.run_weir("trace", "t.wtr", *flags)

    def test_text(self):
        done = self.trace(sample())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = [line.split() for line in done.stdout.splitlines()]
        for row in ("process 4711, rank 3, host node?[7m", "state ended in order", "peak 8.00 MiB at 0.002 ms", "parameter 2.00 MiB",
                    "temporary 6.00 MiB", "moves out 1, 1.00 MiB; in 0, 0 B", "waited for copy out 1 times, 3.000 ms",
                    "aten::m?m 1 1 6.00 MiB 2.000", "outside any op 0 1 2.00 MiB 0.000"):
            self.assertIn(row.split(), rows, done.stdout)

    def test_json(self):
        figures = json.loads(self.trace(sample(), "--json").stdout)
        self.assertEqual((figures["process"], figures["rank"], figures["host"], figures["clock"]), (4711, "3", "node?[7m", "machine"))
        self.assertEqual((figures["ended"], figures["cut_bytes"], figures["threads"], figures["events"]), (True, 0, 1, 9))
        self.assertEqual(figures["file_bytes"], len(sample()))
        self.assertEqual(figures["memory"], {
            "blocks": 2, "bytes": 8 * MIB, "bytes_at_end": 2 * MIB, "peak_bytes": 8 * MIB, "peak_ns": 2000, "classes_at_peak": {
                "parameter": 2 * MIB, "gradient": 0, "optimizer": 0, "activation": 0, "input": 0, "temporary": 6 * MIB}})
        self.assertEqual(figures["evicted"], {"count": 1, "bytes": MIB})
        self.assertEqual(figures["waits"]["copy out"], {"count": 1, "ns": 3_000_000})
        self.assertEqual(figures["ops"][0], {"name": "aten::m?m", "calls": 1, "ns": 2_000_000, "blocks": 1, "bytes": 6 * MIB})

    def test_file(self):
        out = self.folder / "figures.json"
        done = self.trace(sample(), "--json", "-o", out)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertEqual(out.read_text(), self.trace(sample(), "--json").stdout)
        self.assert_refused(self.trace(sample(), "-o", "no/such/folder"), 1, "cannot write")

    def test_cut_trace_is_read_as_far_as_it_goes(self):
        more = wtr.frame(b"", record(6_000_000, "free", address=0x1000))
        figures = json.loads(self.trace(sample() + more[:-1], "--json").stdout)
        self.assertEqual((figures["cut_bytes"], figures["memory"]["bytes_at_end"]), (len(more) - 1, 2 * MIB))

    def test_what_is_no_trace_is_refused_in_one_line(self):
        head, frame = sample()[:128], sample()[128:]
        self.assert_refused(self.trace(b""), 1, "t.wtr is cut inside its header: it has 0 of 128 bytes")
        self.assert_refused(self.trace(head[:64]), 1, "t.wtr is cut inside its header: it has 64 of 128 bytes")
        self.assert_refused(self.trace(b"\x7fELF" + head[4:]), 1, "t.wtr is no trace of Weir")
        self.assert_refused(self.trace(wtr.header(version=2) + frame), 1, "is a trace of version 2; this weir reads version 1")
        self.assert_refused(self.trace(head[:12] + struct.pack("<I", 1 << 31) + head[16:]), 1, "damaged", "header")
        self.assert_refused(self.trace(head + b"WFRM" + b"\xff" * 12), 1, "damaged", "impossible size")
        self.assert_refused(self.trace(head + frame[:20] + b"\0" * 8 + frame[28:]), 1, "t.wtr is damaged before byte")
        self.assert_refused(self.trace(head + wtr.frame(text(1, "x")[:-1], b"")), 1, "damaged", "string")
        bomb = wtr.FRAME.pack(b"WFRM", len(wtr.compress(bytes(1 << 28))), 0, 0) + wtr.compress(bytes(1 << 28))
        self.assert_refused(self.trace(head + bomb), 1, "damaged")
        self.assert_refused(self.run_weir("trace", "missing.wtr"), 1, "cannot read missing.wtr")
        self.assert_refused(self.run_weir("trace", "."), 1, "is no regular file")
