"""docs/cases.md: each test that a row names is there and names the row's id."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = re.findall(r"^\| (C\d+) \| (.+?) \| (.+) \|$", (ROOT / "docs" / "cases.md").read_text(), re.M)


class Cases(unittest.TestCase):
    def test_Rows_AreSortedAndOnceEach(self):
        numbers = [int(case[1:]) for case, _, _ in ROWS]
        self.assertGreater(len(numbers), 30)
        self.assertEqual(numbers, sorted(set(numbers)))

    def test_NamedTests_NameTheCase(self):
        for case, _, text in ROWS:
            named = text.split(";")[0]
            with self.subTest(case):
                files = re.findall(r"`(tests/[\w/]+\.(?:py|cc))`", named)
                self.assertTrue(files or named.startswith("none"), named)
                for file in files:
                    self.assertRegex((ROOT / file).read_text(), rf"\b{case}\b", file)


if __name__ == "__main__":
    unittest.main()
