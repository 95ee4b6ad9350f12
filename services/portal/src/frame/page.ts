/** The interface between the pages and the code that serves them. */
import type {
  AccountRecord,
  Action,
  Author,
  ProjectEnvironment,
  ProjectRecord,
  SessionRecord,
} from '@playline/access-keys';
import type { HtmlValue, Markup } from '@playline/api-docs';
import type { Exchange } from '@playline/http';

/** All visitors, all signed-in users, or users who may perform an action in the project that the path names. */
export type Access = 'public' | 'signed in' | Action;

export interface FormValues {
  text(name: string): string;
  all(name: string): readonly string[];
}

/** An authorised request. The project and environment exist, and the account has access to them. */
export interface Visit {
  readonly exchange: Exchange;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly userAgent: string;
  readonly address: string;
  /** Aborted when the client disconnects. Pass the signal to every read. */
  readonly signal: AbortSignal;
  /** Null only on public pages. */
  readonly account: AccountRecord | null;
  readonly session: SessionRecord | null;
  readonly project: ProjectRecord | null;
  readonly environment: ProjectEnvironment | null;
  readonly params: Readonly<Record<string, string>>;
  /** The projects that the account can read. Sorted by name; live projects first. */
  readonly projects: readonly ProjectRecord[];
  /** The number of firing alerts by project id. */
  readonly firing: ReadonlyMap<string, number>;
  /** The names of the environments that were opened last, by project id. The latest is first. */
  readonly opened: URLSearchParams;
  /** Added to the response if it is a page. */
  readonly headers: string[];
  /** Checks a permission, by default in the project that the path names. */
  can(action: Action, projectId?: string): boolean;
  /** The account id and trace id that are stored with each change. */
  readonly author: Author;
  /** Renders a form with a single-use token for an action of this page or of the page at `path`. */
  form(action: string, content: HtmlValue, options?: { readonly path?: string; readonly className?: string }): Markup;
}

export type PageResponse =
  | {
      readonly kind: 'page';
      readonly title: string;
      /** Replaces the title on the page, but not in the browser history: for titles that contain ids of people. */
      readonly heading?: HtmlValue;
      readonly content: HtmlValue;
      /** Shown at the right of the title. */
      readonly actions?: HtmlValue;
      readonly status?: number;
      /** Files in `assets` to load in addition to `portal.js`. */
      readonly scripts?: readonly string[];
      /** Additional origins to which forms can be submitted or redirected. */
      readonly formOrigins?: readonly string[];
    }
  /** Redirects to a portal path, by default the current page. `notice` is a key of `notices`. */
  | {
      readonly kind: 'redirect';
      readonly to?: string;
      readonly notice?: string;
      readonly cookie?: string | readonly string[];
    }
  | { readonly kind: 'external redirect'; readonly to: URL; readonly cookie: string }
  | { readonly kind: 'file'; readonly name: string; readonly type: string; readonly text: string }
  /** Streamed. An error aborts the connection, so that a truncated file is not mistaken for a complete file. */
  | {
      readonly kind: 'streamed file';
      readonly name: string;
      readonly type: string;
      readonly chunks: AsyncIterable<string>;
    }
  | { readonly kind: 'handled' };

export type ResponseOf<K extends PageResponse['kind']> = Extract<PageResponse, { kind: K }>;

export interface FormAction {
  readonly access: Access;
  /** Requires a sign-in within the last ten minutes. */
  readonly needsFreshSignIn?: boolean;
  /** @throws PublicError, whose message the page shows together with the submitted values */
  run(visit: Visit, values: FormValues): Promise<PageResponse>;
}

export interface PortalPage {
  /** Express path pattern. `:project` and `:environment` are resolved before `show` is called. */
  readonly path: string;
  readonly access: Access;
  /** @param failure the error message and submitted values of a form that failed or needed a fresh sign-in */
  show(visit: Visit, failure?: { message: string; values: FormValues }): PageResponse | Promise<PageResponse>;
  /** Form actions, keyed by the name in `visit.form(name, …)`. */
  readonly actions?: Readonly<Record<string, FormAction>>;
  /** Messages, keyed by the name in `{ kind: 'redirect', notice }`. */
  readonly notices?: Readonly<Record<string, string>>;
}
