/** Which rows of a long list are in the page. Pure. */

export interface RowWindow {
  first: number;
  last: number;
  /** Heights of the rows that are left out, in pixels. */
  above: number;
  below: number;
}

/**
 * Rows that are visible, with some beside them.
 *
 * @param top Pixels of the list above the visible part; negative if the list begins below its edge.
 * @param height Pixels of the visible part.
 */
export function rowsInView(count: number, rowHeight: number, top: number, height: number, spare = 20): RowWindow {
  const first = Math.min(Math.max(0, Math.floor(top / rowHeight) - spare), Math.max(0, count - 1));
  const last = Math.min(count, Math.max(first, Math.ceil((Math.max(0, top) + height) / rowHeight)) + spare);
  return { first, last, above: first * rowHeight, below: (count - last) * rowHeight };
}

/** Browsers do not lay out elements of any height. A longer list scrolls faster than its rows are high. */
export const TALLEST_PX = 8_000_000;

/** Height of a scrolled list, and which row is at its top for a place of the scroll bar. */
export function scaled(count: number, rowHeight: number, viewHeight: number) {
  const full = count * rowHeight;
  const height = Math.min(full, TALLEST_PX);
  const rowsInPage = Math.max(1, Math.floor(viewHeight / rowHeight));
  const lastTop = Math.max(0, count - rowsInPage);
  const room = Math.max(1, height - viewHeight);
  return {
    height,
    lastTop,
    rowAt: (scrollTop: number) => Math.min(lastTop, Math.round((Math.min(scrollTop, room) / room) * lastTop)),
    placeOf: (row: number) => (lastTop === 0 ? 0 : (Math.min(row, lastTop) / lastTop) * room),
  };
}
