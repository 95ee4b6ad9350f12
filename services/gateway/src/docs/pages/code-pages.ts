import { ERROR_CODES, ERRORS, type ErrorCode, REJECTIONS } from '@playline/errors';
import { type Example, errorPath, rejectionPath } from '../operation.ts';
import { type DocsSource, examplesOfError, examplesOfRejection, operationsOfError } from '../source.ts';
import { toExampleList } from './example.ts';
import { type HtmlValue, html, type Markup } from './html.ts';
import { toOperationLink } from './navigation.ts';
import { toPage, toTop } from './page.ts';
import { toCodeSpans } from './words.ts';

type RejectionPageCode = keyof typeof REJECTIONS;
const REJECTION_PAGE_CODES = Object.keys(REJECTIONS) as RejectionPageCode[];

const INDEX = '/docs/errors';

/** The pages of all codes and their index, by path. */
export function createCodePages(source: DocsSource): Map<string, string> {
  return new Map([
    [INDEX, toIndex(source)],
    ...ERROR_CODES.map((code) => [errorPath(code), toErrorPage(source, code)] as const),
    ...REJECTION_PAGE_CODES.map((code) => [rejectionPath(code), toRejectionPage(source, code)] as const),
  ]);
}

function toIndex(source: DocsSource): string {
  const href = (path: string) => toTop(INDEX) + path.slice(1);
  const content = html`<p class="lead">Every answer that is an error has a code, and so has every message of a batch that is refused.
The page of a code says what happened and what to do, and shows requests with their answers.</p>
<h2 id="envelopes">Errors of a request</h2>
<p>The whole request failed. Its <code>link</code> opens the page of its code.</p>
${toList(
  ERROR_CODES.map((code) => ({
    href: href(errorPath(code)),
    code,
    note: html` <span class="quiet">${ERRORS[code].status}</span>`,
    words: ERRORS[code].message,
  })),
)}
<h2 id="rejections">Rejections of single messages</h2>
<p>The batch was judged; this message of it was refused. The others are not affected.</p>
${toList(REJECTION_PAGE_CODES.map((code) => ({ href: href(rejectionPath(code)), code, note: '', words: REJECTIONS[code].cause })))}`;
  return toPage(source, { title: 'Error codes', path: INDEX, content });
}

function toList(entries: readonly { href: string; code: string; note: HtmlValue; words: string }[]): Markup {
  return html`<dl class="rows">
${entries.map(
  ({ href, code, note, words }) => html`<div><dt><a href="${href}"><code>${code}</code></a>${note}</dt>
<dd>${toCodeSpans(words)}</dd></div>
`,
)}</dl>`;
}

function toErrorPage(source: DocsSource, code: ErrorCode): string {
  const { status, message, cause, mend, retry } = ERRORS[code];
  const path = errorPath(code);
  const operations = operationsOfError(source, code).map(
    (operation) => html`<li>${toOperationLink(operation, toTop(path))}</li>\n`,
  );
  const content = html`<p class="lead"><strong class="status">${status}</strong> ${message}</p>
${toAdvice(cause, mend)}
<h2>Send it again?</h2>
<p>${retry ? 'Yes: the same request, unchanged, may succeed later.' : 'No: the same request fails again.'}</p>
${operations.length === 0 ? '' : html`<h2>Operations</h2>\n<ul class="plain">\n${operations}</ul>`}
${toExamples(source, examplesOfError(source, code), path)}`;
  return toPage(source, { title: code, path, content });
}

function toRejectionPage(source: DocsSource, code: RejectionPageCode): string {
  const { cause, mend } = REJECTIONS[code];
  const path = rejectionPath(code);
  const content = html`<p class="lead">A message of a batch was refused. The others are judged on their own.</p>
${toAdvice(cause, mend)}
<h2>Send it again?</h2>
<p>No: the same message is refused again.</p>
${toExamples(source, examplesOfRejection(source, code), path)}`;
  return toPage(source, { title: code, path, content });
}

function toAdvice(cause: string, mend: string): HtmlValue {
  return html`<h2>Cause</h2>
<p>${toCodeSpans(cause)}</p>
<h2>What to do</h2>
<p>${toCodeSpans(mend)}</p>`;
}

/** A code that no operation answers with yet has no example that could be tested; its page says so. */
function toExamples({ context }: DocsSource, examples: readonly Example[], path: string): HtmlValue {
  if (examples.length === 0)
    return html`<h2>Examples</h2>
<p>No operation of this address answers with this code at present.</p>`;
  return html`<h2>Examples</h2>
${toExampleList(examples, { publicUrl: context.publicUrl, top: toTop(path) }, true)}`;
}
