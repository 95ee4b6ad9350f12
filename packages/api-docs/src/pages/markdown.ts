import { type HtmlValue, html, type Markup, toCodeSpans } from './html.ts';

/** Returns the URL of a link target; null if the page is not part of this site. */
export type HrefOf = (target: string) => string | null;

/** A block starts at a fence, a tab group, a heading, a table or a list; other lines are paragraphs. */
const BLOCK =
  /^```(?<info>[^\n]*)\n(?<code>[\s\S]*?)\n```$|^:::tabs\n(?<tabs>[\s\S]*?)\n:::$|^(?:(?!```|:::)\S[^\n]*(?:\n|$))+/gm;

/**
 * Converts the subset of Markdown that the guides use: headings, paragraphs, lists, tables, fences whose info is a label,
 * notices (`>`) and groups of fences as tabs (`:::tabs`). Inline: `code`, **bold** and links.
 */
export function toMarkdownMarkup(text: string, hrefOf: HrefOf): Markup {
  const ids = new Map<string, number>();
  const idOf = (label: string) => {
    const slug = label
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-|-$/g, '');
    const count = (ids.get(slug) ?? 0) + 1;
    ids.set(slug, count);
    return count === 1 ? slug : `${slug}-${count}`;
  };
  const convert = (markdown: string): Markup[] =>
    [...markdown.matchAll(BLOCK)].map(({ 0: block, groups: { info, code, tabs } = {} }) => {
      if (code !== undefined) return toCodeBlock(idOf(`code ${info}`), info === '' ? 'Example' : (info ?? ''), code);
      if (tabs !== undefined) return html`<div class="tabs" data-tabs>\n${convert(tabs)}</div>\n`;
      return toTextBlock(block.trimEnd(), { idOf, inline: (line) => toInline(line, hrefOf) });
    });
  return html`${convert(text)}`;
}

interface TextContext {
  readonly idOf: (label: string) => string;
  readonly inline: (text: string) => HtmlValue;
}

function toTextBlock(block: string, { idOf, inline }: TextContext): Markup {
  const lines = block.split('\n');
  const [, level, heading] = /^(##+) (.*)$/.exec(lines[0] ?? '') ?? [];
  if (heading !== undefined && level === '##') return html`<h2 id="${idOf(heading)}">${inline(heading)}</h2>\n`;
  if (heading !== undefined) return html`<h3 id="${idOf(heading)}">${inline(heading)}</h3>\n`;
  if (block.startsWith('> '))
    return html`<p class="notice">${inline(lines.map((line) => line.slice(2)).join(' '))}</p>\n`;
  const items = () => lines.map((line) => html`<li>${inline(line.replace(/^(- |\d+\. )/, ''))}</li>\n`);
  if (block.startsWith('- ')) return html`<ul>\n${items()}</ul>\n`;
  if (/^\d+\. /.test(block)) return html`<ol>\n${items()}</ol>\n`;
  if (!block.startsWith('| ')) return html`<p>${inline(lines.join(' '))}</p>\n`;
  // A pipe in a cell is escaped with a backslash.
  const cells = (line: string) =>
    line
      .slice(2, -2)
      .split(/(?<!\\) \| /)
      .map((cell) => inline(cell.replaceAll('\\|', '|')));
  return toTable(cells(lines[0]!), lines.slice(2).map(cells));
}

/** The keyboard can reach the table, because it can scroll horizontally. */
export function toTable(headers: readonly HtmlValue[], rows: readonly (readonly HtmlValue[])[]): Markup {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table: ${
    headers
      .slice(0, 2)
      .map((one) => (typeof one === 'string' ? one : ''))
      .join(' ')
      .trim() || 'values'
  }"><table>
<thead><tr>${headers.map((one) => html`<th scope="col">${one}</th>`)}</tr></thead>
<tbody>
${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody>
</table></div>
`;
}

export function toCodeBlock(id: string, label: string, code: string): Markup {
  return html`<div class="block"><p class="label" id="${id}">${label}</p>
<pre tabindex="0" role="region" aria-labelledby="${id}">${code}</pre></div>
`;
}

const INLINE = /\[(?<label>[^\]]+)\]\((?<target>[^)\s]+)\)|\*\*(?<bold>[^*]+)\*\*/g;

function toInline(text: string, hrefOf: HrefOf): HtmlValue {
  const parts: HtmlValue[] = [];
  let end = 0;
  for (const { 0: match, index, groups: { label = '', target = '', bold } = {} } of text.matchAll(INLINE)) {
    parts.push(toCodeSpans(text.slice(end, index)));
    end = index + match.length;
    const href = bold === undefined ? hrefOf(target) : null;
    if (bold !== undefined) parts.push(html`<b>${toCodeSpans(bold)}</b>`);
    else parts.push(href === null ? toCodeSpans(label) : html`<a href="${href}">${toCodeSpans(label)}</a>`);
  }
  return [...parts, toCodeSpans(text.slice(end))];
}
