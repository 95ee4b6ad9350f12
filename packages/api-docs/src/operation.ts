import type { ErrorCode } from '@playline/errors';
import type { z } from 'zod';

/** One operation as data. Every page and document is made from it. */
export interface Operation {
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** As OpenAPI writes it: `/v1/shelves/{shelf}`. */
  readonly path: string;
  readonly summary: string;
  /** Paragraphs of plain text. */
  readonly description: readonly string[];
  /** In the order in which the form shows them. */
  readonly keys: readonly KeyUse[];
  /** What the form asks before it sends; null when the request destroys nothing. */
  readonly confirmation: Confirmation | null;
  readonly parameters: readonly Parameter[];
  readonly body: BodySpec | null;
  /** Null when the answer is not one page of several. */
  readonly paging: Paging | null;
  /** In rising order of status. */
  readonly answers: readonly AnswerSpec[];
  /** The first one is what a reader tries first. */
  readonly examples: readonly Example[];
}

/** A key that an operation accepts. One that is not required may be left out. */
export interface KeyUse {
  /** A kind that the source describes. */
  readonly kind: string;
  readonly required: boolean;
}

/** A question, what happens after a yes, and the word on the button for yes. */
export interface Confirmation {
  readonly prompt: string;
  readonly consequence: string;
  readonly confirmLabel: string;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  /** Always true for parameters in the path. */
  readonly required: boolean;
  readonly description: string;
  /**
   * Schema of the value as JSON: an integer where the address has digits. If it refuses a value of an example, that
   * value is not shown as an example of the parameter. So put rules into the schema and not into its `meta`.
   */
  readonly schema: z.ZodType;
}

export interface BodySpec {
  readonly description: string;
  readonly schema: z.ZodType;
  /** Null when the same body may be sent twice as it is. */
  readonly fresh: FreshMembers | null;
}

/** Members of a body that a form fills anew before each request, unless the reader typed them. */
export interface FreshMembers {
  /** Names of members with a UUID. */
  readonly ids: readonly string[];
  /** Names of members with the time of sending. */
  readonly times: readonly string[];
  /** The sentence that tells the reader about it. */
  readonly hint: string;
}

/**
 * Answers are pages of one list. Each names the pages beside it by cursors, which the next request sends back
 * unchanged.
 */
export interface Paging {
  /** Name of the query parameter that takes a cursor. */
  readonly parameter: string;
  /** Path of members from the body of an answer to the cursor. */
  readonly next: readonly string[];
  readonly previous: readonly string[];
}

export interface AnswerSpec {
  readonly status: number;
  readonly description: string;
  /** Schema of the body when it is not an envelope; null when there is no body. */
  readonly schema: z.ZodType | null;
  /** What more is true of that body with this status than its schema says. */
  readonly narrowed: JsonSchema | null;
  /** Codes of envelopes with this status; empty when the body is no envelope. */
  readonly codes: readonly ErrorCode[];
  readonly headers: readonly HeaderSpec[];
}

/** JSON Schema 2020-12, the dialect of OpenAPI 3.1. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** A header that the answer always carries. */
export interface HeaderSpec {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>> & { readonly pattern?: string };
}

/** A request and the answer to it. A test of the service sends every one of them. */
export interface Example {
  /** Unique among all examples; kebab case. */
  readonly name: string;
  readonly title: string;
  /** Set when the example shows the service in an unusual state. The tests of the service know it by this name. */
  readonly situation?: string;
  readonly request: ExampleRequest;
  readonly answer: ExampleAnswer;
}

export interface ExampleRequest {
  readonly method: Operation['method'];
  /** With its query, percent-encoded. A value of the query may be one of `CURSOR_OF`. */
  readonly target: string;
  /** A value may be `placeholderOf` a kind of key: each document replaces it by its own placeholder. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

export interface ExampleAnswer {
  readonly status: number;
  /** Only headers that are worth showing. */
  readonly headers: Readonly<Record<string, string>>;
  /** Null when the answer has none. */
  readonly body: Readonly<Record<string, unknown>> | null;
}

/** Path of the page that explains a code of the envelope. */
export const errorPath = (code: ErrorCode): string => `/docs/errors/${code}`;
