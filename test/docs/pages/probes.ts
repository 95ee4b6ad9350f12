import type { Page } from 'playwright-core';
import { expect } from 'vitest';

/** Asserts that a page fits the screen and has readable contrast, with collapsed and with expanded examples. */
export async function expectReadable(page: Page, path: string): Promise<void> {
  for (const state of ['collapsed', 'expanded']) {
    if (state === 'expanded')
      await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
    expect(await page.evaluate(TOO_WIDE), `${path} ${state}: wider than the screen`).toEqual([]);
    expect(await page.evaluate(LOW_CONTRAST_TEXT), `${path} ${state}: contrast below 4.5`).toEqual([]);
  }
}

/** Browser script that returns the elements wider than the screen. */
export const TOO_WIDE = `(() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll('body *')]
    .filter((element) => element.getBoundingClientRect().right > width + 1)
    .map((element) => element.tagName + '.' + element.className + '#' + element.id);
})()`;

/** Browser script that returns visible text with a contrast below 4.5, the minimum in WCAG 2.2 (1.4.3). */
export const LOW_CONTRAST_TEXT = `(() => {
  const channels = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
  const linear = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const backgroundOf = (element) => {
    for (let node = element; node !== null; node = node.parentElement) {
      const background = channels(getComputedStyle(node).backgroundColor);
      if (background[3] !== 0) return background;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { parentElement: element, data } = walker.currentNode;
    if (data.trim() === '' || !element.checkVisibility()) continue;
    const luminances = [channels(getComputedStyle(element).color), backgroundOf(element)].map(luminance).sort();
    const contrast = (Math.max(...luminances) + 0.05) / (Math.min(...luminances) + 0.05);
    if (contrast < 4.5) found.push(data.trim().slice(0, 30) + ' ' + contrast.toFixed(2));
  }
  return found;
})()`;
