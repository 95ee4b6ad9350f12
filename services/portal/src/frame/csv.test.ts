import { codePoint } from '@playline/testkit/code-point';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { toCsvLine } from './csv.ts';

/** Parses a line with quoted cells (RFC 4180). */
const readCells = (line: string) => [...line.matchAll(/"((?:[^"]|"")*)"(?:,|\r\n$)/g)].map(([, cell]) => cell!);

it('toCsvLine preserves the text of every cell', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: codePoint }), { minLength: 1, maxLength: 5 }), (texts) => {
      const cells = readCells(toCsvLine(texts)).map((cell) => cell.replaceAll('""', '"'));
      expect(cells).toHaveLength(texts.length);
      const stripApostrophes = (text: string) => text.replaceAll("'", '');
      for (const [index, text] of texts.entries()) expect(stripApostrophes(cells[index]!)).toBe(stripApostrophes(text));
    }),
  );
});

it('toCsvLine escapes formulas after semicolons, tabs and line breaks, where spreadsheets may split a cell', () => {
  const texts = fc.array(fc.string({ unit: fc.constantFrom(...';\t\r\n"\'=+-@ ,a'), maxLength: 8 }), { minLength: 1 });
  fc.assert(
    fc.property(texts, (cells) => {
      const fragments = toCsvLine(cells).split(/[;\t\r\n]/);
      for (const cell of fragments) expect(cell.replace(/^[\s"]+/, '')).not.toMatch(/^[=+\-@]/);
    }),
  );
});

it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t1', '\r1', '\n1', '  =1', '\u00a0=1', '\uff1d1'])(
  'toCsvLine prefixes %j with an apostrophe',
  (text) => {
    expect(toCsvLine([text])).toBe(`"'${text}"\r\n`);
  },
);

it.each([
  ['\t=1', `'\t'=1`],
  ['a;=1+1', `a;'=1+1`],
  ['a;""=1', `a;'""=1`],
  ['first\r\n-2', `first\r\n'-2`],
  ['a\t @x', `a\t' @x`],
])('toCsvLine adds an apostrophe inside %j', (text, safe) => {
  expect(toCsvLine([text])).toBe(`"${safe.replaceAll('"', '""')}"\r\n`);
});

it('toCsvLine does not change numbers or text that contains no formula', () => {
  expect(toCsvLine(['a=b', '{"n":-1}', 'a; b\nc', '', -7])).toBe('"a=b","{""n"":-1}","a; b\nc","",-7\r\n');
});
