"""`weir config`, `weir path`, `weir --version`, and the documentation page of the options."""
import pathlib

from installed_weir import LIBRARIES, WeirTestCase

ROOT = pathlib.Path(__file__).resolve().parents[2]


class ConfigTest(WeirTestCase):
    def options(self, **environment):
        return {option["name"]: option for option in self.json_of("config", "--json", **environment)["options"]}

    def test_defaults(self):
        options = self.options()
        self.assertEqual(len(options), 22)
        for option in options.values():
            self.assertEqual((option["source"], option["value"]), ("default", option["default"]))
        self.assertEqual(options["WEIR_LOG"]["default"], "warn")

    def test_environment(self):
        option = self.options(WEIR_VRAM="80%")["WEIR_VRAM"]
        self.assertEqual((option["value"], option["source"], option["default"]), ("80%", "environment", "auto"))

    def test_text(self):
        lines = self.run_weir("config", WEIR_VRAM="20GiB").stdout.splitlines()
        self.assertEqual(lines[0].split(), ["option", "value", "source", "default"])
        self.assertEqual(lines[1].split(), ["WEIR_VRAM", "20GiB", "environment", "auto"])

    def test_bad_value(self):
        self.assert_refused(self.run_weir("config", WEIR_VRAM="24Gb"), 2, "WEIR_VRAM", "24Gb")

    def test_unknown_name_is_said_and_strict_refuses_it(self):
        done = self.run_weir("config", WEIR_VRAN="1")
        self.assertEqual(done.returncode, 0)
        self.assertIn("did you mean WEIR_VRAM?", done.stderr)
        self.assert_refused(self.run_weir("config", WEIR_VRAN="1", WEIR_STRICT="1"), 2, "did you mean WEIR_VRAM?")

    def test_internal_options_are_not_shown(self):
        self.assertNotIn("WEIR_REQUIRED", self.options(WEIR_REQUIRED="1"))

    def test_file(self):
        out = self.folder / "config.json"
        self.assertEqual(self.run_weir("config", "--json", "-o", out).stdout, "")
        self.assertEqual(out.read_text(), self.run_weir("config", "--json").stdout)

    def test_documentation_page_is_made_from_the_table(self):
        page = self.run_weir("config", "--page").stdout
        self.assertEqual((ROOT / "docs" / "options.md").read_text(), page,
                         "make it again: build/bin/weir config --page > docs/options.md")


class PathTest(WeirTestCase):
    def test_paths(self):
        for flags, library in (([], LIBRARIES[0]), (["--emulated-gpu"], LIBRARIES[3])):
            path = str(self.folder / "lib" / library)
            self.assertEqual(self.run_weir("path", *flags).stdout, path + "\n")
            self.assertEqual(self.json_of("path", "--json", *flags), {"path": path})

    def test_missing(self):
        (self.folder / "lib" / "libweir_preload.so").unlink()
        self.assert_refused(self.run_weir("path"), 4, "libweir_preload.so", "missing")


class VersionTest(WeirTestCase):
    def test_version(self):
        self.assertRegex(self.run_weir("--version").stdout, r"^weir \d+\.\d+\.\d+\n$")
        version = self.json_of("--version", "--json")
        self.assertEqual(version["torch"], ["2.15"])
        self.assertEqual(f"weir {version['version']}\n", self.run_weir("--version").stdout)
