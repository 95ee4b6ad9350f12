import { ERRORS } from '@playline/errors';
import { errorPath, type Operation, type Parameter } from '../operation.ts';
import { articlePath, type DocsSource, errorCodesOf, type PartCodes, partCodePath } from '../source.ts';
import { toValueWords } from '../values.ts';
import { toAnswerText, toCommand } from './text.ts';

/** The whole interface as one text for language models: https://llmstxt.org. */
export function toLlmsText(source: DocsSource): string {
  const { publicUrl, title, about, notes, operations, partCodes, nowhere, articles } = source;
  const sections = [
    `# ${title}`,
    `> ${about}`,
    [`Base address: ${publicUrl}`, ...notes].join('\n'),
    [
      '## Documents',
      '',
      `- [OpenAPI 3.1](${publicUrl}/openapi.json): every operation and schema`,
      `- [Collection](${publicUrl}/collection.json): every example as a request, for Postman and Bruno`,
      `- [Reference](${publicUrl}/docs/reference): the same to read and try in a browser`,
      ...articles.map((article) => `- [${article.title}](${publicUrl}${articlePath(article)}): ${article.summary}`),
    ].join('\n'),
    ...operations.map((operation) => toSection(operation, publicUrl)),
    toErrors(source),
    ...(partCodes === null ? [] : [toPartCodes(partCodes, publicUrl)]),
    ['## Requests that reach no operation', ...nowhere.map((example) => toExample(example, publicUrl))].join('\n\n'),
  ];
  return `${sections.join('\n\n')}\n`;
}

function toSection(operation: Operation, publicUrl: string): string {
  const { method, path, summary, description, answers, examples } = operation;
  const parameters = operation.parameters.map(toParameter);
  return [
    `## ${summary}: ${method} ${path}`,
    ...description,
    ...(parameters.length === 0 ? [] : [parameters.join('\n')]),
    answers.map(({ status, codes, description: words }) => `- ${[status, ...codes].join(' ')}: ${words}`).join('\n'),
    ...examples.map((example) => toExample(example, publicUrl)),
  ].join('\n\n');
}

function toParameter(parameter: Parameter): string {
  const { name, required, description, schema } = parameter;
  const facts = [parameter.in, required ? 'required' : 'optional', ...toValueWords(schema)];
  return `- \`${name}\` (${facts.join(', ')}): ${description}`;
}

function toExample(example: Operation['examples'][number], publicUrl: string): string {
  const { title, answer } = example;
  return `### ${title}\n\n\`\`\`sh\n${toCommand(example, publicUrl)}\n\`\`\`\n\n\`\`\`http\n${toAnswerText(answer)}\n\`\`\``;
}

function toErrors(source: DocsSource): string {
  const lines = errorCodesOf(source).map((code) => {
    const { cause, mend } = source.errors[code] ?? ERRORS[code];
    return `- [${code}](${source.publicUrl}${errorPath(code)}) (${ERRORS[code].status}): ${cause} ${mend}`;
  });
  return `## Error codes\n\n${lines.join('\n')}`;
}

function toPartCodes(partCodes: PartCodes, publicUrl: string): string {
  const lines = Object.entries(partCodes.entries).map(
    ([code, { cause, mend }]) => `- [${code}](${publicUrl}${partCodePath(partCodes, code)}): ${cause} ${mend}`,
  );
  return `## ${partCodes.words.textHeading}\n\n${lines.join('\n')}`;
}
