/** Returns the URL of a link target; null if the deployment does not serve the page. */
export type HrefOf = (target: string) => string | null;

/** A fence, a group of tabs, or lines without an empty line between them. */
const BLOCK =
  /^```(?<info>[^\n]*)\n(?<code>[\s\S]*?)\n```$|^:::tabs\n(?<tabs>[\s\S]*?)\n:::$|^(?:(?!```|:::)\S[^\n]*(?:\n|$))+/gm;

/**
 * Converts the subset of Markdown that the guides use to HTML: headings, paragraphs, lists, tables, fences whose info is a
 * label, notices (`>`) and groups of fences as tabs (`:::tabs`). Inline: `code`, **bold** and links.
 */
export function toHtml(text: string, hrefOf: HrefOf): string {
  const ids = new Set<string>();
  const idOf = (label: string): string => {
    const slug =
      label
        .toLowerCase()
        .match(/[a-z0-9]+/g)
        ?.join('-') ?? '';
    if (ids.has(slug)) return idOf(`${slug}-${ids.size}`);
    ids.add(slug);
    return slug;
  };
  const convert = (markdown: string): string =>
    [...markdown.matchAll(BLOCK)]
      .map(({ 0: block, groups: { info, code, tabs } = {} }) => {
        if (code !== undefined) return toCodeBlock(idOf(`code ${info}`), info || 'Example', code);
        if (tabs !== undefined) return `<div class="tabs" data-tabs>\n${convert(tabs)}</div>\n`;
        return toTextBlock(block.trimEnd(), idOf, (line) => toInline(line, hrefOf));
      })
      .join('');
  return convert(text);
}

function toTextBlock(block: string, idOf: (label: string) => string, inline: (text: string) => string): string {
  const lines = block.split('\n');
  if (block.startsWith('## ')) return `<h2 id="${idOf(block)}">${inline(block.slice(3))}</h2>\n`;
  if (block.startsWith('> ')) return `<p class="notice">${inline(lines.map((line) => line.slice(2)).join(' '))}</p>\n`;
  const items = () => lines.map((line) => `<li>${inline(line.replace(/^(- |\d+\. )/, ''))}</li>\n`).join('');
  if (block.startsWith('- ')) return `<ul>\n${items()}</ul>\n`;
  if (/^\d+\. /.test(block)) return `<ol>\n${items()}</ol>\n`;
  if (!block.startsWith('| ')) return `<p>${inline(lines.join(' '))}</p>\n`;
  // A pipe in a cell is escaped with a backslash.
  const toCells = (line: string, open: string, close: string) => {
    const cells = line.slice(2, -2).split(/(?<!\\) \| /);
    return `<tr>${cells.map((cell) => open + inline(cell.replaceAll('\\|', '|')) + close).join('')}</tr>\n`;
  };
  const rows = lines.slice(2).map((line) => toCells(line, '<td>', '</td>'));
  // The keyboard can reach the table, because it can scroll horizontally.
  return `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>
<thead>${toCells(lines[0] ?? '', '<th scope="col">', '</th>')}</thead>
<tbody>
${rows.join('')}</tbody>
</table></div>
`;
}

const toCodeBlock = (id: string, label: string, code: string): string =>
  `<div class="block"><p class="label" id="${id}">${escapeText(label)}</p>
<pre tabindex="0" role="region" aria-labelledby="${id}">${escapeText(code)}</pre></div>
`;

const INLINE = /`(?<code>[^`]*)`|\[(?<label>[^\]]+)\]\((?<target>[^)\s]+)\)|\*\*(?<bold>[^*]+)\*\*/g;

function toInline(text: string, hrefOf: HrefOf): string {
  let result = '';
  let end = 0;
  for (const { 0: match, index, groups: { code, label = '', target = '', bold } = {} } of text.matchAll(INLINE)) {
    result += escapeText(text.slice(end, index));
    end = index + match.length;
    if (code !== undefined) result += `<code>${escapeText(code)}</code>`;
    else if (bold !== undefined) result += `<b>${toInline(bold, hrefOf)}</b>`;
    else {
      const href = hrefOf(target);
      const content = toInline(label, hrefOf);
      result += href === null ? content : `<a href="${escapeText(href)}">${content}</a>`;
    }
  }
  return result + escapeText(text.slice(end));
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text for the content and the double-quoted attributes of an element. */
export const escapeText = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
