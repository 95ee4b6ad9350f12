import { toAnswerText, toCommand } from '../formats/text.ts';
import type { Example, ExampleAnswer } from '../operation.ts';
import { type HtmlValue, html, type Markup } from './html.ts';

export interface PageOptions {
  title: string;
  /** Path of the page; links are relative to it, so that pages work at whatever address they are served. */
  path: string;
  content: HtmlValue;
  /** Name of a script below `/docs`. */
  script?: string;
}

/** From the page at a path to the top of the service. */
export const toTop = (path: string): string => '../'.repeat(path.split('/').length - 2) || './';

/** The one template of all pages: nothing in it points to another address. */
export function toPage({ title, path, content, script }: PageOptions): string {
  const top = toTop(path);
  const link = (target: string, text: string) => {
    const current = target === path.slice(1) ? html` aria-current="page"` : '';
    return html`<a href="${top}${target}"${current}>${text}</a>`;
  };
  const code = script === undefined ? '' : html`<script src="${top}docs/${script}" defer></script>`;
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} – Playline</title>
<link rel="icon" href="${top}docs/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${top}docs/style.css">
${code}
</head>
<body>
<a class="skip" href="#content">To the content</a>
<header>
<nav aria-label="Documentation">
${link('docs', 'Codes')} ${link('docs/reference', 'Reference')} ${link('openapi.json', 'OpenAPI')} ${link('collection.json', 'Collection')} ${link('llms.txt', 'llms.txt')}
</nav>
</header>
<main id="content" tabindex="-1">
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`;
  return page.text;
}

/** A request as a command, and its answer. */
export function toExampleMarkup(example: Example, publicUrl: string): Markup {
  const { name, title, answer } = example;
  return html`<section class="example" aria-labelledby="${name}">
<h3 id="${name}">${title}</h3>
<p class="label" id="${name}-request">Request</p>
${toBlock(toCommand(example, publicUrl), `${name}-request`)}
<p class="label" id="${name}-answer">Answer</p>
${toAnswerMarkup(answer, `${name}-answer`)}
</section>`;
}

function toAnswerMarkup(answer: ExampleAnswer, label: string): Markup {
  return toBlock(toAnswerText(answer), label);
}

/** Text that may be wider than the screen: it scrolls, hence it takes the focus of the keyboard. */
function toBlock(text: string, label: string): Markup {
  return html`<pre tabindex="0" role="region" aria-labelledby="${label}"><code>${text}</code></pre>`;
}

/** Text between backticks is code. */
export function toCodeSpans(words: string): HtmlValue[] {
  return words.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));
}
