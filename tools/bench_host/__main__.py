"""`python tools/bench_host --check`: costs.py."""
import sys

import costs

sys.exit(costs.main())
