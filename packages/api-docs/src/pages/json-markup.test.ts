import fc from 'fast-check';
import { expect, it } from 'vitest';
import { toJsonMarkup } from './example.ts';

const ENTITIES: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' };
const toVisibleText = (markup: string) =>
  markup.replace(/<[^>]*>/g, '').replace(/&(?:lt|gt|quot|amp|#39);/g, (entity) => ENTITIES[entity] ?? '');

it('toJsonMarkup preserves the text', () => {
  const texts = fc.oneof(
    fc.json().map((text) => JSON.stringify(JSON.parse(text), null, 2)),
    fc.string({ unit: fc.constantFrom('"', '\\', ':', '{', '1', '-', 'e', 'null', '<', '&', ' ', '\n') }),
  );
  fc.assert(
    fc.property(texts, (text) => {
      expect(toVisibleText(toJsonMarkup(text).text)).toBe(text);
    }),
  );
});

it('toJsonMarkup highlights names, strings and other values, and adds links', () => {
  const linkOf = (member: string, value: string) => (member === 'code' ? `/of/${value}` : null);
  expect(toJsonMarkup('{"code": "A_B", "at": -1.5e3, "x": ["code", null]}', linkOf).text).toBe(
    [
      '{<span class="name">&quot;code&quot;</span>: <span class="text">"<a href="/of/A_B">A_B</a>"</span>, ',
      '<span class="name">&quot;at&quot;</span>: <span class="value">-1.5e3</span>, ',
      '<span class="name">&quot;x&quot;</span>: [<span class="text">&quot;code&quot;</span>, <span class="value">null</span>]}',
    ].join(''),
  );
});
