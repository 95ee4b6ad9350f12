/** Runs in a page: names of elements that are wider than the screen. */
export const TOO_WIDE = `(() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll('body *')]
    .filter((element) => element.getBoundingClientRect().right > width + 1)
    .map((element) => element.tagName + '.' + element.className + '#' + element.id);
})()`;

/**
 * Runs in a page: visible texts whose contrast with their background is below 4.5, as WCAG 2.2 (1.4.3) requires for
 * text of any size. Backgrounds of the pages are single colours.
 */
export const FAINT_TEXT = `(() => {
  const channels = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
  const linear = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const brightness = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const groundOf = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const ground = channels(getComputedStyle(at).backgroundColor);
      if (ground[3] !== 0) return ground;
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { parentElement: element, data } = walker.currentNode;
    if (data.trim() === '' || !element.checkVisibility()) continue;
    const tones = [channels(getComputedStyle(element).color), groundOf(element)].map(brightness).sort();
    const contrast = (Math.max(...tones) + 0.05) / (Math.min(...tones) + 0.05);
    if (contrast < 4.5) faint.push(data.trim().slice(0, 30) + ' ' + contrast.toFixed(2));
  }
  return faint;
})()`;
