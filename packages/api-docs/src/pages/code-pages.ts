import { ERRORS, type ErrorCode } from '@playline/errors';
import { type Example, errorPath } from '../operation.ts';
import {
  type DocsSource,
  errorCodesOf,
  examplesOfError,
  examplesOfPartCode,
  operationsOfError,
  type PartCodes,
  partCodePath,
} from '../source.ts';
import { toExampleList } from './example.ts';
import { type HtmlValue, html, type Markup, toCodeSpans } from './html.ts';
import { toOperationLink } from './navigation.ts';
import { toPage, toTop } from './page.ts';

const INDEX = '/docs/errors';

/** The pages of all codes and their index, by path. */
export function createCodePages(source: DocsSource): Map<string, string> {
  const { partCodes } = source;
  return new Map([
    [INDEX, toIndex(source)],
    ...errorCodesOf(source).map((code) => [errorPath(code), toErrorPage(source, code)] as const),
    ...Object.keys(partCodes?.entries ?? {}).flatMap((code) =>
      partCodes === null ? [] : [[partCodePath(partCodes, code), toPartCodePage(source, partCodes, code)] as const],
    ),
  ]);
}

const hrefOf = (path: string): string => toTop(INDEX) + path.slice(1);

function toIndex(source: DocsSource): string {
  const { partCodes } = source;
  const content = html`<p class="lead">Every answer that is an error has a code${partCodes?.words.also ?? ''}.
The page of a code says what happened and what to do, and shows requests with their answers.</p>
<h2 id="envelopes">Errors of a request</h2>
<p>The whole request failed. Its <code>link</code> opens the page of its code.</p>
${toList(
  errorCodesOf(source).map((code) => ({
    href: hrefOf(errorPath(code)),
    code,
    note: html` <span class="quiet">${ERRORS[code].status}</span>`,
    words: ERRORS[code].message,
  })),
)}${partCodes === null ? '' : toPartCodeIndex(partCodes)}`;
  return toPage(source, { title: 'Error codes', path: INDEX, content });
}

function toPartCodeIndex(partCodes: PartCodes): Markup {
  const { folder, entries, words } = partCodes;
  return html`
<h2 id="${folder}">${words.heading}</h2>
<p>${words.index}</p>
${toList(
  Object.entries(entries).map(([code, { cause }]) => ({
    href: hrefOf(partCodePath(partCodes, code)),
    code,
    note: '',
    words: cause,
  })),
)}`;
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
  const { status, message, retry } = ERRORS[code];
  const { cause, mend } = source.errors[code] ?? ERRORS[code];
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

function toPartCodePage(source: DocsSource, partCodes: PartCodes, code: string): string {
  const { cause, mend } = partCodes.entries[code] ?? { cause: '', mend: '' };
  const path = partCodePath(partCodes, code);
  const content = html`<p class="lead">${partCodes.words.lead}</p>
${toAdvice(cause, mend)}
<h2>Send it again?</h2>
<p>${partCodes.words.again}</p>
${toExamples(source, examplesOfPartCode(source, code), path)}`;
  return toPage(source, { title: code, path, content });
}

function toAdvice(cause: string, mend: string): HtmlValue {
  return html`<h2>Cause</h2>
<p>${toCodeSpans(cause)}</p>
<h2>What to do</h2>
<p>${toCodeSpans(mend)}</p>`;
}

/** A code that no operation answers with yet has no example that a test could check. Its page says so. */
function toExamples(source: DocsSource, examples: readonly Example[], path: string): HtmlValue {
  if (examples.length === 0)
    return html`<h2>Examples</h2>
<p>No operation of this address answers with this code at present.</p>`;
  return html`<h2>Examples</h2>
${toExampleList(examples, { source, top: toTop(path) }, true)}`;
}
