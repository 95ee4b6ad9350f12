import { ERROR_CODES, ERRORS, type ErrorCode, REJECTIONS } from '@playline/errors';
import { errorPath, rejectionPath } from '../operation.ts';
import { type DocsSource, examplesOfError, examplesOfRejection, operationsOfError } from '../source.ts';
import { type HtmlValue, html, type Markup } from './html.ts';
import { toCodeSpans, toExampleMarkup, toPage } from './page.ts';

type RejectionPageCode = keyof typeof REJECTIONS;
const REJECTION_PAGE_CODES = Object.keys(REJECTIONS) as RejectionPageCode[];

/** The pages of all codes and their index, by path. */
export function createCodePages(source: DocsSource): Map<string, string> {
  return new Map([
    ['/docs', toIndex(source)],
    ...ERROR_CODES.map((code) => [errorPath(code), toErrorPage(source, code)] as const),
    ...REJECTION_PAGE_CODES.map((code) => [rejectionPath(code), toRejectionPage(source, code)] as const),
  ]);
}

function toIndex({ context }: DocsSource): string {
  const content = html`<p>Every answer that is an error has a code. Every message of a batch that is refused has one too.
Each page says what happened, what to do, and shows a request and its answer.</p>
<p>Base address: <code>${context.publicUrl}</code></p>
<h2>Errors</h2>
${toList(
  ERROR_CODES.map((code) => ({
    href: `.${errorPath(code)}`,
    code,
    note: ` ${ERRORS[code].status}`,
    words: ERRORS[code].message,
  })),
)}
<h2>Rejections of single messages</h2>
${toList(REJECTION_PAGE_CODES.map((code) => ({ href: `.${rejectionPath(code)}`, code, note: '', words: REJECTIONS[code].cause })))}`;
  return toPage({ title: 'Codes', path: '/docs', content });
}

function toList(entries: readonly { href: string; code: string; note: string; words: string }[]): Markup {
  return html`<dl>
${entries.map(
  ({ href, code, note, words }) => html`<dt><a href="${href}"><code>${code}</code></a>${note}</dt>
<dd>${words}</dd>
`,
)}</dl>`;
}

function toErrorPage(source: DocsSource, code: ErrorCode): string {
  const { status, message, cause, mend, retry } = ERRORS[code];
  const examples = examplesOfError(source, code);
  const operations = operationsOfError(source, code).map(
    ({ method, path }) => html`<li><code>${method} ${path}</code></li>`,
  );
  const content = html`<p class="status">Status ${status}. ${message}</p>
${toAdvice(cause, mend)}
<h2>Send it again?</h2>
<p>${retry ? 'Yes: the same request, unchanged, may succeed later.' : 'No: the same request fails again.'}</p>
${operations.length === 0 ? '' : html`<h2>Operations</h2><ul>${operations}</ul>`}
${toExamples(source, examples)}`;
  return toPage({ title: code, path: errorPath(code), content });
}

function toRejectionPage(source: DocsSource, code: RejectionPageCode): string {
  const { cause, mend } = REJECTIONS[code];
  const content = html`<p class="status">A message of a batch was refused. The others are judged on their own.</p>
${toAdvice(cause, mend)}
<h2>Send it again?</h2>
<p>No: the same message is refused again.</p>
${toExamples(source, examplesOfRejection(source, code))}`;
  return toPage({ title: code, path: rejectionPath(code), content });
}

function toAdvice(cause: string, mend: string): HtmlValue {
  return html`<h2>Cause</h2>
<p>${toCodeSpans(cause)}</p>
<h2>What to do</h2>
<p>${toCodeSpans(mend)}</p>`;
}

/** A code that no operation answers with yet has no example that could be tested; its page says so. */
function toExamples({ context }: DocsSource, examples: Parameters<typeof toExampleMarkup>[0][]): HtmlValue {
  if (examples.length === 0)
    return html`<h2>Examples</h2>
<p>No operation of this address answers with this code at present.</p>`;
  return html`<h2>Examples</h2>
${examples.map((example) => toExampleMarkup(example, context.publicUrl))}`;
}
