/**
 * A list may be taller than a browser can make an element (about 33 million pixels, half of that in some). Then the
 * element is as tall as is safe, and a position in it stands for a place in the list: one to one near both ends, so that
 * they can be reached pixel by pixel, and stretched between.
 */

export interface Scale {
  /** The height of all rows of the list. */
  list: number;
  /** The height of the scrolled element. */
  element: number;
  view: number;
}

/** Safe in every browser, even when the page is zoomed in. */
export const TALLEST = 6_000_000;
const END = 500_000;

export function scaleOf(list: number, view: number, tallest = TALLEST): Scale {
  return { list, element: Math.min(list, tallest), view };
}

const furthest = (scale: Scale): { list: number; element: number; end: number } => {
  const list = Math.max(0, scale.list - scale.view);
  const element = Math.max(0, scale.element - scale.view);
  return { list, element, end: Math.min(END, element / 3) };
};

/** The place in the list for a position of the element. */
export function toList(scale: Scale, position: number): number {
  const far = furthest(scale);
  if (far.list <= far.element) return clamp(position, far.list);
  if (position <= far.end) return Math.max(0, position);
  if (position >= far.element - far.end) return clamp(far.list - (far.element - position), far.list);
  const stretch = (far.list - 2 * far.end) / (far.element - 2 * far.end);
  return far.end + (position - far.end) * stretch;
}

/** The position of the element for a place in the list. */
export function toElement(scale: Scale, place: number): number {
  const far = furthest(scale);
  if (far.list <= far.element) return clamp(place, far.list);
  if (place <= far.end) return Math.max(0, place);
  if (place >= far.list - far.end) return clamp(far.element - (far.list - place), far.element);
  const stretch = (far.list - 2 * far.end) / (far.element - 2 * far.end);
  return far.end + (place - far.end) / stretch;
}

/**
 * The place after the element was scrolled. A wheel or a finger moves a little and means those pixels;
 * a leap means that the scroll bar was dragged, to the place that it stands for.
 */
export function moved(scale: Scale, place: number, before: number, after: number): number {
  const far = furthest(scale);
  if (far.list <= far.element) return clamp(after, far.list);
  const step = after - before;
  const atEnd = after <= 0 || after >= far.element;
  if (atEnd || Math.abs(step) > 3 * scale.view) return toList(scale, after);
  return clamp(place + step, far.list);
}

/** Small steps let the scroll bar drift away from the true place. Beyond this it is corrected at once, otherwise in a pause. */
export const DRIFT = END / 2;

const clamp = (value: number, most: number): number => Math.min(Math.max(0, value), Math.max(0, most));
