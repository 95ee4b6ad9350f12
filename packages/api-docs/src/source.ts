import type { ErrorCode } from '@playline/errors';
import type { Area, Site } from '@playline/guides';
import { type Example, errorPath, type JsonSchema, type Operation } from './operation.ts';
import type { HtmlValue } from './pages/html.ts';

/** Describes an API. All documentation is generated from this source. */
export interface DocsSource {
  /** The area of the operations. */
  readonly area: Area;
  /** The pages of the other service, which the navigation adds. */
  readonly elsewhere: Site['elsewhere'];
  /** Without a trailing slash. */
  readonly publicUrl: string;
  readonly title: string;
  /** Version of the API, not of the service. */
  readonly version: string;
  /** A short phrase without a period. */
  readonly summary: string;
  /** One or two sentences. */
  readonly about: string;
  /** What every caller must know. Each note is one line. */
  readonly notes: readonly string[];
  /** OpenAPI tag of all operations. Client generators group operations by tag. */
  readonly tag: { readonly name: string; readonly description: string };
  readonly keys: readonly KeySpec[];
  readonly firstPage: FirstPage;
  /** The first page contains a form for the first operation. */
  readonly operations: readonly Operation[];
  /** Adds constraints that zod cannot express to named schemas. */
  readonly refineSchemas?: (schemas: Readonly<Record<string, JsonSchema>>) => Record<string, JsonSchema>;
  /** Error codes. The index lists the codes in this order, and each code has a page. */
  readonly errors: Readonly<Partial<Record<ErrorCode, CodeText>>>;
  /** Codes of messages that are rejected although their batch is accepted. Empty if the API has no batches. */
  readonly rejections: Readonly<Record<string, CodeText>>;
  /** Additional content for the page of a rejection code. */
  readonly rejectionDetails?: (code: string) => HtmlValue;
  /** Examples that do not belong to an operation. */
  readonly otherExamples: readonly Example[];
  /** The navigation lists the articles of each area in this order. */
  readonly articles: readonly Article[];
  /** Other files, keyed by path, such as the client library. */
  readonly downloads?: ReadonlyMap<string, Document>;
}

/** A generated documentation file. */
export interface Document {
  readonly type: string;
  readonly text: string;
  /** Sent instead of the text. */
  readonly bytes?: Buffer;
}

/** An additional page, such as a guide. */
export interface Article {
  /** Path segment below `/docs/`. */
  readonly name: string;
  readonly area: Area;
  readonly title: string;
  readonly summary: string;
  /** Links are relative to `/docs/`. */
  readonly content: HtmlValue;
  /** Plain text files that are served below the path of the page. */
  readonly files: readonly { readonly name: string; readonly text: string }[];
}

export interface KeySpec {
  /** Camel case: `publishable` becomes `{{publishableKey}}`, `$PUBLISHABLE_KEY` and a security scheme name. */
  readonly kind: string;
  readonly header: string;
  /** Label of the form field, such as `Publishable key`. */
  readonly label: string;
  /** Forms display a public key and store it until the tab is closed. They mask any other key and do not store it. */
  readonly isPublic: boolean;
  /** Where the key can be used. */
  readonly note: string;
}

/** The text around the form on the first page. */
export interface FirstPage {
  readonly title: string;
  readonly lead: string;
  /** Heading of the form. */
  readonly heading: string;
  /** URL fragment of the form. */
  readonly anchor: string;
  readonly before: HtmlValue;
  readonly after: HtmlValue;
}

/** Why an error occurs and how to fix it. */
export interface CodeText {
  readonly cause: string;
  readonly fix: string;
}

export const errorCodesOf = ({ errors }: Pick<DocsSource, 'errors'>): ErrorCode[] => Object.keys(errors) as ErrorCode[];

export const rejectionPath = (code: string): string => `/docs/rejections/${code}`;

/** Returns the path of the page of each error code and rejection code, keyed by code. */
export const pathsOfCodes = ({ errors, rejections }: DocsSource): Readonly<Record<string, string>> => ({
  ...Object.fromEntries(Object.keys(rejections).map((code) => [code, rejectionPath(code)])),
  ...Object.fromEntries(errorCodesOf({ errors }).map((code) => [code, errorPath(code)])),
});

export const articlePath = ({ name }: Article): string => `/docs/${name}`;

export function examplesOfError(source: DocsSource, code: string): Example[] {
  return allExamples(source).filter(({ response }) => response.body?.code === code);
}

export function examplesOfRejection(source: DocsSource, code: string): Example[] {
  return allExamples(source).filter(({ response: { body } }) =>
    JSON.stringify(body?.rejections ?? []).includes(`"${code}"`),
  );
}

export function operationsOfError({ operations }: DocsSource, code: string): Operation[] {
  return operations.filter(({ responses }) => responses.some(({ codes }) => codes.some((one) => one === code)));
}

export function allExamples({ operations, otherExamples }: DocsSource): Example[] {
  return [...operations.flatMap(({ examples }) => examples), ...otherExamples];
}

/** @throws Error if the source has no key of this kind */
export function keyOf({ keys }: DocsSource, kind: string): KeySpec {
  const key = keys.find((one) => one.kind === kind);
  if (key === undefined) throw new Error(`The documentation source has no key of kind ${kind}. Add it to keys.`);
  return key;
}
