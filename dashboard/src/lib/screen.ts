/** What fits. */
const PHONE = '(max-width: 40rem)' // as in theme/narrow.css, where each row of a table is a card

/** Rows of a table at first. A slow phone makes some hundred cells a second, and two cards fill its screen. */
export const rowsAtFirst = () => (matchMedia(PHONE).matches ? 8 : 25)
