import type { ErrorCode } from '@playline/errors';
import type { z } from 'zod';

/** Describes an operation. Pages and machine-readable documents are generated from this description. */
export interface Operation {
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path template in OpenAPI syntax, such as `/v1/shelves/{shelf}`. */
  readonly path: string;
  readonly summary: string;
  readonly description: readonly string[];
  /** The form shows the key fields in this order. */
  readonly keys: readonly KeyUse[];
  /** Shown before the form sends a destructive request; null for other requests. */
  readonly confirmation: Confirmation | null;
  readonly parameters: readonly Parameter[];
  readonly body: BodySpec | null;
  /** Null if the operation is not paginated. */
  readonly paging: Paging | null;
  /** Sorted by status in ascending order. */
  readonly responses: readonly ResponseSpec[];
  /** Forms are prefilled with the first example. */
  readonly examples: readonly Example[];
}

export interface KeyUse {
  /** See `KeySpec.kind`. */
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
  /** Always true for path parameters. */
  readonly required: boolean;
  readonly description: string;
  /**
   * Schema of the parsed value: an integer instead of a string of digits. Example values that fail validation are not
   * shown, so define constraints in the schema and not in its `meta`.
   */
  readonly schema: z.ZodType;
}

export interface BodySpec {
  readonly description: string;
  readonly schema: z.ZodType;
  /** Null if the same body can be sent twice. */
  readonly refreshedFields: RefreshedFields | null;
}

/** Body fields to which a form assigns new values before each request, unless the reader has edited them. */
export interface RefreshedFields {
  /** Names of fields that contain a UUID. */
  readonly ids: readonly string[];
  /** Names of fields that contain the current time. */
  readonly times: readonly string[];
  /** Hint that the form shows to the reader. */
  readonly hint: string;
}

/** Cursor pagination. Each response contains cursors for the next and the previous page. */
export interface Paging {
  /** Name of the query parameter for the cursor. */
  readonly parameter: string;
  /** Path to the cursor for the next page in the response body. */
  readonly next: readonly string[];
  readonly previous: readonly string[];
}

export interface ResponseSpec {
  readonly status: number;
  readonly description: string;
  /** Schema of a success body; null for error responses and responses without a body. */
  readonly schema: z.ZodType | null;
  /** Constraints on the body that apply only to this status. */
  readonly constraints: JsonSchema | null;
  /** Error codes; empty for success responses. */
  readonly codes: readonly ErrorCode[];
  readonly headers: readonly HeaderSpec[];
}

/** JSON Schema 2020-12, the dialect of OpenAPI 3.1. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** A header that is always present in the response. */
export interface HeaderSpec {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>> & { readonly pattern?: string };
}

/** A request and its response. The tests of the service send the requests of all examples. */
export interface Example {
  /** Kebab case, unique among all examples. */
  readonly name: string;
  readonly title: string;
  /** A special state of the service. The tests of the service establish it before they send the request. */
  readonly situation?: string;
  readonly request: ExampleRequest;
  /** Body fields that keep their values although a command refreshes them, because they cause the error. */
  readonly fixedFields?: readonly string[] | undefined;
  readonly response: ExampleResponse;
}

export interface ExampleRequest {
  readonly method: Operation['method'];
  /** Path and query, percent-encoded. A query value can be one of `CURSOR_PLACEHOLDERS`. */
  readonly target: string;
  /** A value can be a key placeholder from `placeholderOf`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

export interface ExampleResponse {
  readonly status: number;
  /** Contains only the headers that the documentation shows. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>> | null;
}

export const errorPath = (code: ErrorCode): string => `/docs/errors/${code}`;
