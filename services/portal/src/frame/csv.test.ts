import { codePoint } from '@playline/testkit/code-point';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toCsvLine } from './csv.ts';

/** Cells of one line by RFC 4180, all in quotes. */
const readCells = (line: string) => [...line.matchAll(/"((?:[^"]|"")*)"(?:,|\r\n$)/g)].map(([, cell]) => cell!);

describe('a line of CSV', () => {
  it('has one cell for each text, whatever is in it, and says the same', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: codePoint }), { minLength: 1, maxLength: 5 }), (texts) => {
        const cells = readCells(toCsvLine(texts)).map((cell) => cell.replaceAll('""', '"'));
        expect(cells).toHaveLength(texts.length);
        for (const [index, text] of texts.entries()) expect([text, `'${text}`]).toContain(cells[index]);
      }),
    );
  });

  it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '  =1', '\u00a0=1', '\uff1d1'])(
    'takes the words %j for no formula',
    (text) => {
      expect(toCsvLine([text])).toBe(`"'${text}"\r\n`);
    },
  );

  it('leaves other texts and numbers as they are', () => {
    expect(toCsvLine(['a=b', '{"n":-1}', '', -7])).toBe('"a=b","{""n"":-1}","",-7\r\n');
  });
});
