import { type Article, type HtmlValue, html, toCodeBlock, toCodeSpans } from '@playline/api-docs';
import { type Recipe, readRecipes } from '@playline/events';
import type { ExampleContext } from './examples.ts';

const COOKBOOK = 'cookbook';
const DAY_MS = 86_400_000;

/** The page and its downloads come from the same files. Fields of the page replace values in the queries and commands. */
export function createCookbook(context: ExampleContext): Article {
  const recipes = readRecipes();
  return {
    name: COOKBOOK,
    area: 'Analysts',
    title: 'Cookbook',
    summary: 'SQL queries for player activity, retention, actions, payments and consent.',
    content: html`<p>Each recipe is a SQL file. Names in braces, such as <code>{since: Date}</code>, are query parameters: pass their values with the request, or fill them in here. A test runs every recipe against the traffic of a simulated game.</p>
${toFields(context)}
<p>The commands read the recipe from this page, and your password from <code>CLICKHOUSE_PASSWORD</code>${context.clickhouseUrl === undefined ? html` and the server address from <code>CLICKHOUSE_URL</code>` : ''}. To get a readable table over HTTP, add <code>default_format=PrettyCompact</code> to the URL.</p>
<p>Days are in the time zone of your project, except in recipes that name UTC. For another time zone, replace <code>person_days</code> with <code>person_days_in(zone = 'Asia/Tokyo')</code>, and <code>local_day</code> with <code>toDate(event_time, 'Asia/Tokyo')</code>.</p>
${recipes.map((recipe) => toSection(recipe, context))}`,
    files: recipes.map(({ file, text }) => ({ name: file, text })),
  };
}

/** Hidden without JavaScript. */
function toFields({ nowMs }: ExampleContext): HtmlValue {
  const toDay = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  const toField = (name: string, label: string, type: string, value: string) =>
    html`<label for="recipe-${name}">${label} <input id="recipe-${name}" name="${name}" type="${type}" value="${value}" autocomplete="off" spellcheck="false"></label>`;
  return html`<div class="recipe-fields" data-recipe-fields hidden>
${toField('environment', 'Environment id', 'text', 'production')}
${toField('since', 'First day', 'date', toDay(nowMs - 30 * DAY_MS))}
${toField('until', 'Day after the last day', 'date', toDay(nowMs + DAY_MS))}
${toField('user', 'Database user', 'text', 'analyst')}
</div>
<script type="module" src="recipes.js"></script>`;
}

function toSection({ file, title, about, parameters, cost, commands, query }: Recipe, context: ExampleContext) {
  const id = file.replace('.sql', '');
  const [overHttp = '', withClient = ''] = commands;
  const download = `curl -sS ${context.publicUrl}/docs/${COOKBOOK}/${file} | `;
  const server = context.clickhouseUrl ?? '$CLICKHOUSE_URL';
  const httpCommand = overHttp.replace('$CLICKHOUSE_URL', () => server).replace(`@${file}`, '@-');
  return html`<h2 id="${id}">${title}</h2>
${about.map((text) => html`<p>${toCodeSpans(text)}</p>\n`)}<ul>
${parameters.map(({ names, description }) => html`<li>${names.map((name, index) => html`${index === 0 ? '' : ', '}<code>${name}</code>`)}: ${description}</li>\n`)}</ul>
<p>Cost: ${cost}</p>
<p>File: <a href="${COOKBOOK}/${file}"><code>${file}</code></a></p>
<details class="fold"><summary>Query and commands</summary>
<div class="examples" data-recipe>
${toCodeBlock(`${id}-query`, 'Query', query)}
${toCodeBlock(`${id}-http`, 'Over HTTP', download + httpCommand)}
${toCodeBlock(`${id}-client`, 'With clickhouse-client', download + withClient.replace(` < ${file}`, ''))}
</div>
</details>
`;
}
