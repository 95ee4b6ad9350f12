import type { ErrorCode } from '@playline/errors';
import type { Example, ExampleAnswer, JsonSchema, Operation } from './operation.ts';
import type { HtmlValue } from './pages/html.ts';

/** An interface as its service describes it: the one source of all its documentation. */
export interface DocsSource {
  /** Without a slash at its end. */
  readonly publicUrl: string;
  readonly title: string;
  /** Version of the interface, not of the program. It changes when callers must know. */
  readonly version: string;
  /** What the interface is about, in a few words. */
  readonly summary: string;
  /** The same in a sentence or two. */
  readonly about: string;
  /** What every caller has to know, one line each. */
  readonly notes: readonly string[];
  /** The tag under which generators of clients group the operations. */
  readonly tag: { readonly name: string; readonly description: string };
  readonly keys: readonly KeySpec[];
  readonly firstPage: FirstPage;
  /** The first page has a form for the first one. */
  readonly operations: readonly Operation[];
  /** Adds to the named schemas what zod cannot express. */
  readonly refineSchemas?: (schemas: Readonly<Record<string, JsonSchema>>) => Record<string, JsonSchema>;
  /** Codes of the envelope, each with a page, in the order of the index. */
  readonly errors: Readonly<Partial<Record<ErrorCode, CodeText>>>;
  /** Null when a request is accepted or refused only as a whole. */
  readonly partCodes: PartCodes | null;
  /** Examples that belong to no operation. */
  readonly otherExamples: readonly Example[];
  /** Pages about other things than the interface, in the order of the navigation. */
  readonly articles: readonly Article[];
}

/** A page about something beside the interface, such as what to do with the data. */
export interface Article {
  /** Its address below `/docs/`: one part of a path. */
  readonly name: string;
  readonly title: string;
  /** What a reader finds there, in a sentence. */
  readonly summary: string;
  /** Links are relative to `/docs/`. */
  readonly content: HtmlValue;
  /** Served below the page as plain text, so that a reader can download them. */
  readonly files: readonly { readonly name: string; readonly text: string }[];
}

/** A kind of key. */
export interface KeySpec {
  /**
   * In camel case. `publishable` gives `{{publishableKey}}`, `$PUBLISHABLE_KEY` and the name of the security scheme.
   */
  readonly kind: string;
  readonly header: string;
  /** As the field of a form is called: `Publishable key`. */
  readonly label: string;
  /** A public key is shown while it is typed and remembered until the tab is closed; any other key is neither. */
  readonly isPublic: boolean;
  /** Where it may be used. */
  readonly note: string;
}

/** What the first page says before and after the form of the first operation. */
export interface FirstPage {
  readonly title: string;
  readonly lead: string;
  /** Heading of the part with the form; links to that part use it too. */
  readonly heading: string;
  /** Name of that part in an address. */
  readonly anchor: string;
  readonly before: HtmlValue;
  readonly after: HtmlValue;
  /** The text above the first example as a command. */
  readonly command: string;
}

/** Why a code is answered and what to do about it. */
export interface CodeText {
  readonly cause: string;
  readonly fix: string;
}

/** Codes with which parts of a request are refused although the request itself is accepted; each has a page. */
export interface PartCodes {
  /** Pages stand below `/docs/<folder>/`. */
  readonly folder: string;
  readonly entries: Readonly<Record<string, CodeText>>;
  /** Whether an answer refuses a part with this code. */
  readonly occursIn: (code: string, answer: ExampleAnswer) => boolean;
  readonly texts: PartCodeTexts;
}

export interface PartCodeTexts {
  /** Above the links to their pages. */
  readonly navigation: string;
  /** Above their list in the index of codes. */
  readonly heading: string;
  /** Above their list in `llms.txt`. */
  readonly textHeading: string;
  /** Follows the sentence "Every answer that is an error has a code". */
  readonly introSuffix: string;
  /** In the index: what happened to the request and to its other parts. */
  readonly index: string;
  /** The same, on the page of a code. */
  readonly lead: string;
  /** Whether the same part may be sent again. */
  readonly resend: string;
}

/** Codes of the envelope that have a page. */
export const errorCodesOf = ({ errors }: DocsSource): ErrorCode[] => Object.keys(errors) as ErrorCode[];

/** Path of the page that explains a code of a part. */
export const partCodePath = ({ folder }: PartCodes, code: string): string => `/docs/${folder}/${code}`;

export const articlePath = ({ name }: Article): string => `/docs/${name}`;

/** Examples whose answer has this code in its envelope. */
export function examplesOfError(source: DocsSource, code: string): Example[] {
  return allExamples(source).filter(({ answer }) => answer.body?.code === code);
}

/** Examples whose answer refuses a part with this code. */
export function examplesOfPartCode(source: DocsSource, code: string): Example[] {
  return allExamples(source).filter(({ answer }) => source.partCodes?.occursIn(code, answer) ?? false);
}

/** Operations that may answer with this code. */
export function operationsOfError({ operations }: DocsSource, code: string): Operation[] {
  return operations.filter(({ answers }) => answers.some(({ codes }) => codes.some((one) => one === code)));
}

export function allExamples({ operations, otherExamples: nowhere }: DocsSource): Example[] {
  return [...operations.flatMap(({ examples }) => examples), ...nowhere];
}

/**
 * The key of a kind.
 * @throws Error when the source describes none
 */
export function keyOf({ keys }: DocsSource, kind: string): KeySpec {
  const key = keys.find((one) => one.kind === kind);
  if (key === undefined) throw new Error(`the documentation describes no key of the kind ${kind}`);
  return key;
}
