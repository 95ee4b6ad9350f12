import type { ErrorCode } from '@playline/errors';
import type { Example, ExampleAnswer, JsonSchema, Operation } from './operation.ts';
import type { HtmlValue } from './pages/html.ts';

/** The description of an interface, from which all its documentation is made. */
export interface DocsSource {
  /** Without a trailing slash. */
  readonly publicUrl: string;
  readonly title: string;
  /** Version of the interface, not of the program. */
  readonly version: string;
  /** A phrase. */
  readonly summary: string;
  /** A sentence or two. */
  readonly about: string;
  /** Facts for every caller, one line each. */
  readonly notes: readonly string[];
  /** The tag under which client generators group the operations. */
  readonly tag: { readonly name: string; readonly description: string };
  readonly keys: readonly KeySpec[];
  readonly firstPage: FirstPage;
  /** The first page has a form for the first one. */
  readonly operations: readonly Operation[];
  /** Adds to the named schemas what zod cannot express. */
  readonly refineSchemas?: (schemas: Readonly<Record<string, JsonSchema>>) => Record<string, JsonSchema>;
  /** Codes of the envelope in the order of the index; each has a page. */
  readonly errors: Readonly<Partial<Record<ErrorCode, CodeText>>>;
  /** Null when a request is accepted or rejected only as a whole. */
  readonly partCodes: PartCodes | null;
  /** Examples that belong to no operation. */
  readonly otherExamples: readonly Example[];
  /** In the order of the navigation. */
  readonly articles: readonly Article[];
}

/** A page about another subject than the interface. */
export interface Article {
  /** Its path segment below `/docs/`. */
  readonly name: string;
  readonly title: string;
  readonly summary: string;
  /** Links are relative to `/docs/`. */
  readonly content: HtmlValue;
  /** Served below the page as plain text. */
  readonly files: readonly { readonly name: string; readonly text: string }[];
}

export interface KeySpec {
  /**
   * In camel case: `publishable` gives `{{publishableKey}}`, `$PUBLISHABLE_KEY` and the name of the security scheme.
   */
  readonly kind: string;
  readonly header: string;
  /** Label of the form field: `Publishable key`. */
  readonly label: string;
  /** A public key is visible and remembered until the tab is closed; any other key is neither. */
  readonly isPublic: boolean;
  /** Where it may be used. */
  readonly note: string;
}

/** The text around the form of the first page. */
export interface FirstPage {
  readonly title: string;
  readonly lead: string;
  /** Heading of the form. */
  readonly heading: string;
  /** Fragment of the form's address. */
  readonly anchor: string;
  readonly before: HtmlValue;
  readonly after: HtmlValue;
  /** Label of the first example as a command. */
  readonly command: string;
}

/** Why a code is answered and what to do. */
export interface CodeText {
  readonly cause: string;
  readonly fix: string;
}

/** Codes of rejected parts of an accepted request; each has a page. */
export interface PartCodes {
  /** Pages are below `/docs/<folder>/`. */
  readonly folder: string;
  readonly entries: Readonly<Record<string, CodeText>>;
  /** Whether an answer rejects a part with this code. */
  readonly occursIn: (code: string, answer: ExampleAnswer) => boolean;
  readonly texts: PartCodeTexts;
}

export interface PartCodeTexts {
  /** Above the links in the navigation. */
  readonly navigation: string;
  /** Above the list in the index of codes. */
  readonly heading: string;
  /** Above the list in `llms.txt`. */
  readonly textHeading: string;
  /** Follows "Every answer that is an error has a code". */
  readonly introSuffix: string;
  /** In the index: what happened to the request and its other parts. */
  readonly index: string;
  /** The same, on the page of a code. */
  readonly lead: string;
  /** Whether the same part may be sent again. */
  readonly resend: string;
}

export const errorCodesOf = ({ errors }: DocsSource): ErrorCode[] => Object.keys(errors) as ErrorCode[];

export const partCodePath = ({ folder }: PartCodes, code: string): string => `/docs/${folder}/${code}`;

export const articlePath = ({ name }: Article): string => `/docs/${name}`;

export function examplesOfError(source: DocsSource, code: string): Example[] {
  return allExamples(source).filter(({ answer }) => answer.body?.code === code);
}

export function examplesOfPartCode(source: DocsSource, code: string): Example[] {
  return allExamples(source).filter(({ answer }) => source.partCodes?.occursIn(code, answer) ?? false);
}

export function operationsOfError({ operations }: DocsSource, code: string): Operation[] {
  return operations.filter(({ answers }) => answers.some(({ codes }) => codes.some((one) => one === code)));
}

export function allExamples({ operations, otherExamples: nowhere }: DocsSource): Example[] {
  return [...operations.flatMap(({ examples }) => examples), ...nowhere];
}

/** @throws Error when the source does not describe the kind */
export function keyOf({ keys }: DocsSource, kind: string): KeySpec {
  const key = keys.find((one) => one.kind === kind);
  if (key === undefined) throw new Error(`the documentation describes no key of the kind ${kind}`);
  return key;
}
