import type { ExampleContext } from './examples/example.ts';
import { createNowhereExamples } from './examples/nowhere.ts';
import type { Example, Operation } from './operation.ts';
import { createOperations } from './operations.ts';

/** The one source of every form of the documentation. */
export interface DocsSource {
  readonly context: ExampleContext;
  readonly operations: readonly Operation[];
  /** Examples that belong to no operation. */
  readonly nowhere: readonly Example[];
}

export function createDocsSource(context: ExampleContext): DocsSource {
  return { context, operations: createOperations(context), nowhere: createNowhereExamples(context) };
}

/** Examples whose answer has this code in its envelope. */
export function examplesOfError(source: DocsSource, code: string): Example[] {
  return allExamples(source).filter(({ answer }) => answer.body?.code === code);
}

/** Examples whose answer refuses a message with this code. */
export function examplesOfRejection(source: DocsSource, code: string): Example[] {
  return allExamples(source).filter(({ answer }) =>
    JSON.stringify(answer.body?.rejections ?? []).includes(`"${code}"`),
  );
}

/** Operations that may answer with this code. */
export function operationsOfError({ operations }: DocsSource, code: string): Operation[] {
  return operations.filter(({ answers }) => answers.some(({ codes }) => codes.some((one) => one === code)));
}

export function allExamples({ operations, nowhere }: DocsSource): Example[] {
  return [...operations.flatMap(({ examples }) => examples), ...nowhere];
}
