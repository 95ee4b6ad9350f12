import fc from 'fast-check';
import { expect, it } from 'vitest';
import { html } from './html.ts';
import { relativeRoot } from './page.ts';

it('html escapes values in text and attributes', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('<', '>', '&', '"', "'", 'a', ';') }), (value) => {
      const { text } = html`<p title="${value}">${[value, html`<b>${value}</b>`]}</p>`;
      expect(text.replace(/&(amp|lt|gt|quot|#39);|[a;]/g, '')).toBe('<p title=""><b></b></p>'.replaceAll('a', ''));
    }),
  );
});

it('html does not escape nested markup', () => {
  expect(html`<ul>${[html`<li>1</li>`, html`<li>${2}</li>`]}</ul>`.text).toBe('<ul><li>1</li><li>2</li></ul>');
});

it.each([
  ['/docs', './'],
  ['/docs/reference', '../'],
  ['/docs/errors/X', '../../'],
])('the service root relative to %s is %s', (path, top) => {
  expect(relativeRoot(path)).toBe(top);
  expect(new URL(`${top}docs`, `https://a.test/prefix${path}`).pathname).toBe('/prefix/docs');
});
