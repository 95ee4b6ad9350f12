import { codePoint } from '@playline/testkit/code-point';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { toCsvLine } from './csv.ts';

/** Cells of one line by RFC 4180, all in quotes. */
const readCells = (line: string) => [...line.matchAll(/"((?:[^"]|"")*)"(?:,|\r\n$)/g)].map(([, cell]) => cell!);

it('a CSV line has one cell with the same text for each text', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: codePoint }), { minLength: 1, maxLength: 5 }), (texts) => {
      const cells = readCells(toCsvLine(texts)).map((cell) => cell.replaceAll('""', '"'));
      expect(cells).toHaveLength(texts.length);
      const bare = (text: string) => text.replaceAll("'", '');
      for (const [index, text] of texts.entries()) expect(bare(cells[index]!)).toBe(bare(text));
    }),
  );
});

it('a CSV line begins no formula after a semicolon, tab or line break, where spreadsheets split cells', () => {
  const texts = fc.array(fc.string({ unit: fc.constantFrom(...';\t\r\n"\'=+-@ ,a'), maxLength: 8 }), {
    minLength: 1,
  });
  fc.assert(
    fc.property(texts, (cells) => {
      const found = toCsvLine(cells).split(/[;\t\r\n]/);
      for (const cell of found) expect(cell.replace(/^[\s"]+/, '')).not.toMatch(/^[=+\-@]/);
    }),
  );
});

it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t1', '\r1', '\n1', '  =1', '\u00a0=1', '\uff1d1'])(
  'the text %j in CSV does not become a formula',
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
])('the text %j in CSV does not become a formula in a later cell', (text, safe) => {
  expect(toCsvLine([text])).toBe(`"${safe.replaceAll('"', '""')}"\r\n`);
});

it('other texts and numbers are unchanged in CSV', () => {
  expect(toCsvLine(['a=b', '{"n":-1}', 'a; b\nc', '', -7])).toBe('"a=b","{""n"":-1}","a; b\nc","",-7\r\n');
});
