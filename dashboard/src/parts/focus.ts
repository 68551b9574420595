/** Keeps the focus. A browser gives it up when the element that has it is removed, hidden or disabled: keyboards and screen
 * readers would then be at the page's top.
 */

/** Around a lost element, what takes the focus if there is no news. */
const FALLBACKS = 'form, section, dialog, main'
/** Elements with what has come of the action, such as a transaction's state. */
const NEWS = '[data-news]:not(:empty)'

const canHaveFocus = (one: Element) => one.isConnected && one.checkVisibility() && !one.matches(':disabled')

/** What gets the focus next: news near the lost element, or what is around it. `path` begins at the lost element. */
function nextFocus(path: readonly Element[]): HTMLElement | undefined {
  const around = path.slice(1).filter((one) => canHaveFocus(one) && one.closest('main') !== null)
  const news = around.flatMap((one) => [...one.querySelectorAll<HTMLElement>(NEWS)]).find(canHaveFocus)
  return news ?? around.find((one): one is HTMLElement => one.matches(FALLBACKS))
}

/** Watches the page from now on. */
export function keepFocus() {
  let path: readonly Element[] = []
  let isLooking = false
  let isLost = false // and not given up by a click beside

  function look() {
    isLooking = false
    const [lost] = path
    if (!isLost || !lost || ![lost, document.body].includes(document.activeElement ?? lost)) return
    // What was hidden or disabled for a moment has it again.
    const next = canHaveFocus(lost) ? lost : nextFocus(path)
    if (!(next instanceof HTMLElement)) return
    isLost = false
    if (next !== lost && !next.hasAttribute('tabindex')) next.tabIndex = -1
    next.focus({ preventScroll: true })
  }

  document.addEventListener('focusin', ({ target }) => {
    const found: Element[] = []
    for (let one = target instanceof Element ? target : null; one; one = one.parentElement) found.push(one)
    path = found
    isLost = false
  })
  // A disabled element loses the focus with the next picture, and React sets it by itself before that.
  new MutationObserver(() => {
    const [held] = path
    if (held && !canHaveFocus(held) && (held === document.activeElement || !held.isConnected)) isLost = true
    if (isLooking) return
    isLooking = true
    requestAnimationFrame(() => setTimeout(look))
  }).observe(document.body, { subtree: true, childList: true, attributeFilter: ['disabled', 'hidden'] })
}
