"""Takes pictures of every page, in both themes, on a phone and on a desk, side by side: one file for each page.

    python dashboard/scripts/screens.py http://127.0.0.1:8080 docs/dashboard [PAGE…]

The network must have played its first task, as `consilium up` does.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import httpx
from PIL import Image
from playwright.sync_api import Browser, expect, sync_playwright

# A wallet of a given account, which signs nothing. The chain's node answers its requests.
WALLET = """
({ account, chain, node }) => {
  const ask = async (method, params) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const answer = await fetch(node, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    return (await answer.json()).result
  }
  const own = { eth_accounts: [account], eth_requestAccounts: [account], eth_chainId: '0x' + chain.toString(16) }
  const provider = {
    request: async ({ method, params }) => own[method] ?? ask(method, params ?? []),
    on: () => {},
    removeListener: () => {},
  }
  const info = {
    uuid: '00000000-0000-4000-8000-000000000001',
    name: 'Wallet',
    icon: 'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg"/>',
    rdns: 'org.example.wallet',
  }
  const detail = Object.freeze({ info, provider })
  const announce = () => window.dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail }))
  window.addEventListener('eip6963:requestProvider', announce)
  announce()
}
"""
WALLET_PAGES = ("/portfolio", "/desk", "/wallet")
SIZES = {"desk": (1280, 900), "phone": (390, 844)}
GAP, HIGHEST = 24, 2_400  # pixels


def best_hospital(url: str) -> str:
    return str(httpx.get(f"{url}/v1/nodes?role=hospital&sort=-rewarded").raise_for_status().json()["items"][0]["node"])


def pages(url: str) -> dict[str, str]:
    account = best_hospital(url)
    return {
        "overview": "/",
        "tasks": "/tasks",
        "task": "/tasks/1",
        "round": "/tasks/1/rounds/1",
        "nodes": "/nodes",
        "node": f"/nodes/{account}/hospital",
        "account": f"/accounts/{account}",
        "wallet": "/wallet",
        "portfolio": "/portfolio",
        "propose": "/propose",
        "desk": "/desk",
    }


def picture(browser: Browser, url: str, page: str, theme: str, size: tuple[int, int]) -> Image.Image:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if theme == "dark" else "light"
    )
    shown = context.new_page()
    if page in WALLET_PAGES:
        config = httpx.get(f"{url}/config.json").raise_for_status().json()
        wallet = {"account": best_hospital(url), "chain": config["chain_id"], "node": config["chain_url"]}
        shown.add_init_script(f"({WALLET})({json.dumps(wallet)})")
    shown.goto(f"{url}/#{page}")
    shown.wait_for_selector("h1")
    expect(shown.locator(".loading")).to_have_count(0, timeout=20_000)
    if page in WALLET_PAGES:
        shown.get_by_role("button", name="Disconnect").wait_for()
        shown.wait_for_timeout(3_000)
        expect(shown.locator(".loading")).to_have_count(0, timeout=20_000)
    if page == "/propose":
        expect(shown.get_by_text("Shown when the file is valid.")).to_have_count(0, timeout=20_000)
    if "/rounds/" in page:
        shown.get_by_role("button", name="Verify now").click()
        shown.get_by_role("button", name="Verify again").wait_for(timeout=60_000)
    shown.wait_for_timeout(600)
    taken = Image.open(io.BytesIO(shown.screenshot(full_page=True))).convert("RGB")
    context.close()
    return taken.crop((0, 0, taken.width, min(taken.height, HIGHEST)))


def beside(pictures: list[Image.Image]) -> Image.Image:
    width = sum(one.width for one in pictures) + GAP * (len(pictures) + 1)
    sheet = Image.new("RGB", (width, max(one.height for one in pictures) + 2 * GAP), "#8a938f")
    at = GAP
    for one in pictures:
        sheet.paste(one, (at, GAP))
        at += one.width + GAP
    return sheet.resize((sheet.width // 2, sheet.height // 2), Image.Resampling.LANCZOS)


def main(url: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        wanted = sys.argv[3:]
        for name, page in pages(url).items():
            if wanted and name not in wanted:
                continue
            taken = [picture(browser, url, page, theme, size) for theme in ("light", "dark") for size in SIZES.values()]
            beside(taken).quantize(64).save(folder / f"{name}.png", optimize=True)
            print(folder / f"{name}.png")  # noqa: T201
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"), Path(sys.argv[2]))
