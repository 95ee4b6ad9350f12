import { type Article, type HtmlValue, html, toCodeSpans } from '@playline/api-docs';
import { type Recipe, readRecipes } from '@playline/events';

const NAME = 'cookbook';

/** Common questions about stored events. The page and the files that it links to are made from the same text. */
export function createCookbook(): Article {
  const recipes = readRecipes();
  return {
    name: NAME,
    title: 'Cookbook',
    summary: 'SQL for what people ask of their events: who came, who came back, what they did, paid and allowed.',
    content: html`<p>Each recipe is a file that can be piped to ClickHouse, and begins with the words that you read here. What stands in braces, such as <code>{since: Date}</code>, is a parameter: its value comes with the request. Days and times are UTC. Every file is run by a test against the traffic of a simulated game, whose answers are known.</p>
<p>The commands take the address from <code>CLICKHOUSE_URL</code> and the password from <code>CLICKHOUSE_PASSWORD</code>. Over HTTP, <code>default_format=PrettyCompact</code> in the address makes a table of the answer.</p>
${recipes.map(toSection)}`,
    files: recipes.map(({ file, text }) => ({ name: file, text })),
  };
}

function toSection({ file, title, about, parameters, cost, commands, query }: Recipe): HtmlValue {
  const id = file.replace('.sql', '');
  const [overHttp = '', byClient = ''] = commands;
  return html`<h2 id="${id}">${title}</h2>
${about.map((words) => html`<p>${toCodeSpans(words)}</p>\n`)}<ul>
${parameters.map(({ names, words }) => html`<li>${names.map((name, index) => html`${index === 0 ? '' : ', '}<code>${name}</code>`)}: ${words}</li>\n`)}</ul>
<p>Cost: ${cost}</p>
<p>File: <a href="${NAME}/${file}"><code>${file}</code></a></p>
<details class="fold"><summary>Query and commands</summary>
<div class="examples">
${toBlock(`${id}-query`, 'Query', query)}
${toBlock(`${id}-http`, 'Over HTTP', overHttp)}
${toBlock(`${id}-client`, 'With a client', byClient)}
</div>
</details>
`;
}

function toBlock(id: string, label: string, sample: string): HtmlValue {
  return html`<div class="block"><p class="label" id="${id}">${label}</p>
<pre tabindex="0" role="region" aria-labelledby="${id}">${sample}</pre></div>`;
}
