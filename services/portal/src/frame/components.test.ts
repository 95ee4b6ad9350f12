import { expect, it } from 'vitest';
import { shortened, table, time } from './components.ts';

it('a time shows the year only if it is not the current year, and the exact time on hover', () => {
  const ms = Date.UTC(2019, 1, 3, 4, 5, 6, 7);
  const expected =
    '<time datetime="2019-02-03T04:05:06.007Z" title="2019-02-03 04:05:06.007 UTC">Feb 3 2019, 04:05:06</time>';
  expect(time(ms).text).toBe(expected);
  expect(time(Date.now()).text).toMatch(/>[A-Z][a-z]{2} \d{1,2}, \d\d:\d\d:\d\d</);
});

it('a shortened text shows its first and last characters, and copies the full text', () => {
  const hash = `0x${'ab'.repeat(20)}`;
  const { text } = shortened(hash, 'the hash');
  expect(text).toContain(`<code title="${hash}">0xababab…abab</code>`);
  expect(text).toContain(`data-copy="${hash}"`);
  expect(shortened('short', 'the hash').text).toContain('>short</code>');
});

it('a table labels each cell with its column, and a row with a detail has a control that opens the detail', () => {
  const { text } = table(
    'Keys',
    ['Name', { text: 'Count', align: 'right' }],
    [['a', 1], { cells: ['b', 2], detail: 'more' }],
  );
  expect(text.match(/<td data-label="Count" class="right">\d<\/td>/g)).toHaveLength(2);
  expect(text.match(/<input type="checkbox"[^>]*aria-label="Show details of row \d"/g)).toHaveLength(1);
  expect(text).toContain('<tr class="detail"><td colspan="3">more</td></tr>');
  expect(table('Keys', ['Name'], [['a']]).text).not.toContain('checkbox');
});
