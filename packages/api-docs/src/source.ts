import type { ErrorCode } from '@playline/errors';
import type { Example, ExampleAnswer, JsonSchema, Operation } from './operation.ts';
import type { HtmlValue } from './pages/html.ts';

/** The one source of every form of the documentation: an interface as its service describes it. */
export interface DocsSource {
  /** Without a slash at its end. */
  readonly publicUrl: string;
  readonly title: string;
  /** Of the interface, not of the program: it rises when callers have to know. */
  readonly version: string;
  /** What the interface is about, in a few words. */
  readonly summary: string;
  /** The same in a sentence or two. */
  readonly about: string;
  /** What every caller has to know: a line each. */
  readonly notes: readonly string[];
  /** Under which generators of clients file the operations. */
  readonly tag: { readonly name: string; readonly description: string };
  readonly keys: readonly KeySpec[];
  readonly first: FirstPage;
  /** The first page tries the first one. */
  readonly operations: readonly Operation[];
  /** Puts into named schemas what the schemas of the contract cannot say. */
  readonly refineSchemas?: (schemas: Readonly<Record<string, JsonSchema>>) => Record<string, JsonSchema>;
  /** Codes of the envelope, each with a page; the order is that of the index. */
  readonly errors: Readonly<Partial<Record<ErrorCode, CodeWords>>>;
  /** Null when a request is taken or refused as a whole. */
  readonly partCodes: PartCodes | null;
  /** Examples that belong to no operation. */
  readonly nowhere: readonly Example[];
  /** Pages beside those of the interface, in the order of the navigation. */
  readonly articles: readonly Article[];
}

/** A page about something that is no part of the interface, such as what to do with what it took. */
export interface Article {
  /** Where it stands below `/docs/`: one part of an address. */
  readonly name: string;
  readonly title: string;
  /** What a reader finds there, in a sentence. */
  readonly summary: string;
  /** Links are relative to `/docs/`. */
  readonly content: HtmlValue;
  /** Served below the page as plain text, so that they can be fetched and piped. */
  readonly files: readonly { readonly name: string; readonly text: string }[];
}

/** A kind of key. */
export interface KeySpec {
  /** Camel case: `{{publishableKey}}`, `$PUBLISHABLE_KEY` and the security scheme are named after `publishable`. */
  readonly kind: string;
  readonly header: string;
  /** As the field of a form is called: `Publishable key`. */
  readonly label: string;
  /** A public key is shown while it is typed and kept until the tab is closed; another one is neither. */
  readonly isPublic: boolean;
  /** Where it may be used. */
  readonly note: string;
}

/** What the first page says around the form of the first operation. */
export interface FirstPage {
  readonly title: string;
  readonly lead: string;
  /** Of the part with the form; links to the page say it too. */
  readonly heading: string;
  /** Its name in an address. */
  readonly anchor: string;
  readonly before: HtmlValue;
  readonly after: HtmlValue;
  /** Above the first example as a command. */
  readonly command: string;
}

/** Why a code comes and what to do about it. */
export interface CodeWords {
  readonly cause: string;
  readonly mend: string;
}

/** Codes with which parts of a request are refused while the request itself is answered; each has a page. */
export interface PartCodes {
  /** Pages stand below `/docs/<folder>/`. */
  readonly folder: string;
  readonly entries: Readonly<Record<string, CodeWords>>;
  /** Whether an answer refuses a part with this code. */
  readonly occursIn: (code: string, answer: ExampleAnswer) => boolean;
  readonly words: PartCodeWords;
}

export interface PartCodeWords {
  /** Above the links to their pages. */
  readonly navigation: string;
  /** Above their list in the index of codes. */
  readonly heading: string;
  /** Above their list in `llms.txt`. */
  readonly textHeading: string;
  /** Goes on behind "Every answer that is an error has a code". */
  readonly also: string;
  /** What became of the request and of its other parts: in the index. */
  readonly index: string;
  /** The same, on the page of a code. */
  readonly lead: string;
  /** Whether the same part may be sent again. */
  readonly again: string;
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

export function allExamples({ operations, nowhere }: DocsSource): Example[] {
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
