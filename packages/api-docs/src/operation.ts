import type { ErrorCode } from '@playline/errors';
import type { z } from 'zod';

/** What every form of the documentation is made of: one operation as data. */
export interface Operation {
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** As OpenAPI writes it: `/v1/shelves/{shelf}`. */
  readonly path: string;
  readonly summary: string;
  /** Paragraphs of plain text. */
  readonly description: readonly string[];
  /** In the order of the form. */
  readonly keys: readonly KeyUse[];
  /** What a form asks before it sends; null when nothing is destroyed. */
  readonly caution: Caution | null;
  readonly parameters: readonly Parameter[];
  readonly body: BodySpec | null;
  /** Null when an answer is not one of several pages. */
  readonly paging: Paging | null;
  /** In rising order of status. */
  readonly answers: readonly AnswerSpec[];
  /** The first one is what a reader tries first. */
  readonly examples: readonly Example[];
}

/** A key that an operation takes; one that is not required may be left out. */
export interface KeyUse {
  /** One of those that the source describes. */
  readonly kind: string;
  readonly required: boolean;
}

/** A question, what follows from a yes, and the word for that yes. */
export interface Caution {
  readonly question: string;
  readonly consequence: string;
  readonly consent: string;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  /** True for those of a path. */
  readonly required: boolean;
  readonly description: string;
  /**
   * Of the value as JSON: an integer for digits. A value in an example that it refuses is not shown as an example of
   * the parameter, so rules stand in the schema and not in its `meta`.
   */
  readonly schema: z.ZodType;
}

export interface BodySpec {
  readonly description: string;
  readonly schema: z.ZodType;
  /** Null when a body that was sent may be sent again as it is. */
  readonly fresh: FreshMembers | null;
}

/** Members of a body that a form makes anew before each request, where the reader did not type them. */
export interface FreshMembers {
  /** Names of members with a UUID. */
  readonly ids: readonly string[];
  /** Names of members with the time of sending. */
  readonly times: readonly string[];
  /** Tells the reader so. */
  readonly hint: string;
}

/** Answers are pages of one list: each names its neighbours by cursors, which the next request gives back as they are. */
export interface Paging {
  /** Name of the query parameter that takes a cursor. */
  readonly parameter: string;
  /** Members that lead from the body of an answer to the cursor. */
  readonly next: readonly string[];
  readonly previous: readonly string[];
}

export interface AnswerSpec {
  readonly status: number;
  readonly description: string;
  /** Of the body when it is no envelope; null when there is none. */
  readonly schema: z.ZodType | null;
  /** What holds of that body with this status beyond its schema. */
  readonly narrowed: JsonSchema | null;
  /** Codes of the envelope with this status; empty when there is no envelope. */
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
  /** When the service does not fare as usual: a name that the tests of the service know. */
  readonly situation?: string;
  readonly request: ExampleRequest;
  readonly answer: ExampleAnswer;
}

export interface ExampleRequest {
  readonly method: Operation['method'];
  /** With its query, percent-encoded. A value of the query may be one of `CURSOR_OF`. */
  readonly target: string;
  /** A value may be that of `placeholderOf` a kind of key, which each form replaces by its own placeholder. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

export interface ExampleAnswer {
  readonly status: number;
  /** Those worth showing. */
  readonly headers: Readonly<Record<string, string>>;
  /** Null when the answer has none. */
  readonly body: Readonly<Record<string, unknown>> | null;
}

/** Path of the page that explains a code of the envelope. */
export const errorPath = (code: ErrorCode): string => `/docs/errors/${code}`;
