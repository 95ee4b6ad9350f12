import { ERROR_CODES, ERRORS, REJECTIONS } from '@playline/errors';
import { errorPath, keyHeadersOf, type Operation, rejectionPath } from '../operation.ts';
import type { DocsSource } from '../source.ts';
import { toAnswerText, toCommand } from './text.ts';

/** The whole interface in one text for machines that read: https://llmstxt.org. */
export function toLlmsText({ context, operations, nowhere }: DocsSource): string {
  const { publicUrl } = context;
  const keyHeaders = keyHeadersOf(context);
  const sections = [
    '# Playline audience interface',
    '> Takes batches of game events, keeps the tracking consent of visitors, and erases one person on request. JSON over HTTP.',
    [
      `Base address: ${publicUrl}`,
      `Messages and consent need a publishable key in the header \`${keyHeaders.publishable}\`, erasure a secret key in \`${keyHeaders.secret}\`.`,
      'Send a request again only after 429 (wait `Retry-After` seconds), 500 or a broken connection, with the same message ids. Never send it again after another 4xx.',
      'Unknown members are ignored. null in an optional member means that it is absent.',
    ].join('\n'),
    [
      '## Documents',
      '',
      `- [OpenAPI 3.1](${publicUrl}/openapi.json): every operation and schema`,
      `- [Collection](${publicUrl}/collection.json): every example as a request, for Postman and Bruno`,
      `- [Reference](${publicUrl}/docs/reference): the same to read and try in a browser`,
    ].join('\n'),
    ...operations.map((operation) => toSection(operation, publicUrl)),
    toErrors(publicUrl),
    toRejections(publicUrl),
    ['## Requests that reach no operation', ...nowhere.map((example) => toExample(example, publicUrl))].join('\n\n'),
  ];
  return `${sections.join('\n\n')}\n`;
}

function toSection({ method, path, summary, description, query, answers, examples }: Operation, publicUrl: string) {
  const parameters = query.map(
    ({ name, required, description: words }) =>
      `- \`${name}\` (query, ${required ? 'required' : 'optional'}): ${words}`,
  );
  return [
    `## ${summary}: ${method} ${path}`,
    ...description,
    ...(parameters.length === 0 ? [] : [parameters.join('\n')]),
    answers.map(({ status, codes, description: words }) => `- ${[status, ...codes].join(' ')}: ${words}`).join('\n'),
    ...examples.map((example) => toExample(example, publicUrl)),
  ].join('\n\n');
}

function toExample(example: Operation['examples'][number], publicUrl: string): string {
  const { title, answer } = example;
  return `### ${title}\n\n\`\`\`sh\n${toCommand(example, publicUrl)}\n\`\`\`\n\n\`\`\`http\n${toAnswerText(answer)}\n\`\`\``;
}

function toErrors(publicUrl: string): string {
  const lines = ERROR_CODES.map((code) => {
    const { status, cause, mend } = ERRORS[code];
    return `- [${code}](${publicUrl}${errorPath(code)}) (${status}): ${cause} ${mend}`;
  });
  return `## Error codes\n\n${lines.join('\n')}`;
}

function toRejections(publicUrl: string): string {
  const lines = Object.entries(REJECTIONS).map(
    ([code, { cause, mend }]) => `- [${code}](${publicUrl}${rejectionPath(code)}): ${cause} ${mend}`,
  );
  return `## Rejection codes\n\n${lines.join('\n')}`;
}
