"""Without the extra `networks` everything works but the networks, which say what to install."""

import subprocess
import sys
from pathlib import Path

BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("jax", "jaxlib", "optax"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Block())
"""
RUN = """
import largesse as lg
from largesse.campaign import read_campaign
from largesse.errors import MissingPackageError
from largesse.pipeline import run
shown = run(read_campaign(sys.argv[1]), sys.argv[2])
assert shown["model"]["name"] == "Stack", shown["model"]
log = lg.simulate("averaged", n=100).log
for model in (lg.SIRE(), lg.IRE()):
    try:
        model.fit(log)
    except MissingPackageError as error:
        print(error)
assert "jax" not in sys.modules
"""


def test_a_run_needs_no_jax_and_a_network_says_what_to_install(shop: Path, tmp_path: Path) -> None:
    campaign = shop / "campaign.toml"
    campaign.write_text(campaign.read_text(encoding="utf-8").replace('"linear"', '"quick"'), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", BLOCK + RUN, str(shop), str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("pip install 'largesse[networks]'") == 2
