import { expect, it } from 'vitest';
import { toHtml } from './markdown.ts';

const convert = (text: string) => toHtml(text, (target) => (target.startsWith('no') ? null : `/${target}`));

it('text is escaped everywhere, and code spans contain no other markup', () => {
  for (const text of [
    '<b>&"',
    '## <b>&"',
    '- <b>&"',
    '> <b>&"',
    '`**<b>&"**`',
    '| a |\n|---|\n| <b>&" |',
    '```<b>&"\n<b>&"\n```',
  ])
    expect(convert(text), text).toMatch(/&lt;b&gt;&amp;&quot;/);
  expect(convert('`**a** [b](c)` **`d`**')).toBe('<p><code>**a** [b](c)</code> <b><code>d</code></b></p>\n');
});

it('a link to a page that the deployment does not serve becomes text', () => {
  expect(convert('[a `b`](c#d) and [e](no-page)')).toBe('<p><a href="/c#d">a <code>b</code></a> and e</p>\n');
});

it('headings with the same text have different ids, and fences between :::tabs form a group', () => {
  expect(convert('## A b\n\n## A b').match(/id="[^"]*"/g)).toEqual(['id="a-b"', 'id="a-b-1"']);
  const tabs = convert(':::tabs\n```curl\na\n\nb\n```\n```Python\nc\n```\n:::\n\nd');
  expect(tabs).toMatch(
    /^<div class="tabs" data-tabs>[\s\S]*>curl<[\s\S]*>a\n\nb<[\s\S]*>Python<[\s\S]*<\/div>\n<p>d<\/p>\n$/,
  );
});

it('a table keeps escaped pipes in their cells', () => {
  expect(convert('| a | b |\n|---|---|\n| c \\| d | `e` |')).toContain(
    '<tr><td>c | d</td><td><code>e</code></td></tr>',
  );
});
