import type { ErrorCode } from '@playline/errors';
import type { z } from 'zod';

/** One operation as data, from which every page and document is made. */
export interface Operation {
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** As OpenAPI writes it: `/v1/shelves/{shelf}`. */
  readonly path: string;
  readonly summary: string;
  readonly description: readonly string[];
  /** In the order of the form. */
  readonly keys: readonly KeyUse[];
  /** Shown by the form before it sends; null when the request destroys nothing. */
  readonly confirmation: Confirmation | null;
  readonly parameters: readonly Parameter[];
  readonly body: BodySpec | null;
  /** Null when the answer is not a page of a list. */
  readonly paging: Paging | null;
  /** In ascending order of status. */
  readonly answers: readonly AnswerSpec[];
  /** Forms start with the first one. */
  readonly examples: readonly Example[];
}

export interface KeyUse {
  /** A `KeySpec.kind`. */
  readonly kind: string;
  readonly required: boolean;
}

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
   * Schema of the value as JSON (an integer for digits). Examples that it does not accept are not shown, so put rules
   * into the schema and not into its `meta`.
   */
  readonly schema: z.ZodType;
}

export interface BodySpec {
  readonly description: string;
  readonly schema: z.ZodType;
  /** Null when the same body may be sent twice. */
  readonly fresh: FreshMembers | null;
}

/** Members of a body that a form fills before each request, unless the reader typed them. */
export interface FreshMembers {
  /** Names of members with a UUID. */
  readonly ids: readonly string[];
  /** Names of members with the time of sending. */
  readonly times: readonly string[];
  /** Shown to the reader. */
  readonly hint: string;
}

/** A list read page by page: each answer has cursors, which the next request sends back. */
export interface Paging {
  /** Name of the query parameter that takes a cursor. */
  readonly parameter: string;
  /** Path of the cursor in the body of an answer. */
  readonly next: readonly string[];
  readonly previous: readonly string[];
}

export interface AnswerSpec {
  readonly status: number;
  readonly description: string;
  /** Schema of a body that is no envelope; null when there is no body. */
  readonly schema: z.ZodType | null;
  /** Additional constraints of that body with this status. */
  readonly narrowed: JsonSchema | null;
  /** Codes of the envelope; empty when the body is none. */
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

/** A request and its answer. A test of the service sends each example. */
export interface Example {
  /** Unique among all examples; kebab case. */
  readonly name: string;
  readonly title: string;
  /** Names an unusual state of the service, which the tests of the service bring about. */
  readonly situation?: string;
  readonly request: ExampleRequest;
  readonly answer: ExampleAnswer;
}

export interface ExampleRequest {
  readonly method: Operation['method'];
  /** With its query, percent-encoded. A value may be one of `CURSOR_PLACEHOLDERS`. */
  readonly target: string;
  /** A value may be the `placeholderOf` a kind of key. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

export interface ExampleAnswer {
  readonly status: number;
  /** Only headers that are worth showing. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>> | null;
}

export const errorPath = (code: ErrorCode): string => `/docs/errors/${code}`;
