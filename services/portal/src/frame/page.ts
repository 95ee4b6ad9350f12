/** The interface between pages and the frame. */
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

/** All visitors, all signed-in users, or users with permission for an action in the project of the path. */
export type Access = 'public' | 'signed in' | Action;

export interface FormValues {
  text(name: string): string;
  all(name: string): readonly string[];
}

/** An authorised request. Its project and environment exist, and the account has access to them. */
export interface Visit {
  readonly exchange: Exchange;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly userAgent: string;
  readonly address: string;
  /** Aborted when the client disconnects. Pass it to every read. */
  readonly signal: AbortSignal;
  /** Null only on public pages. */
  readonly account: AccountRecord | null;
  readonly session: SessionRecord | null;
  readonly project: ProjectRecord | null;
  readonly environment: ProjectEnvironment | null;
  readonly params: Readonly<Record<string, string>>;
  /** Checks a permission, by default in the project of the path. */
  mayDo(action: Action, projectId?: string): boolean;
  /** The account and trace id for change records. */
  readonly author: Author;
  /** Renders a form with a single-use token for an action of this page or of the page at `path`. */
  form(action: string, content: HtmlValue, options?: { readonly path?: string; readonly className?: string }): Markup;
}

export type Answer =
  | {
      readonly kind: 'page';
      readonly title: string;
      readonly content: HtmlValue;
      readonly status?: number;
      /** Files in `assets` to load in addition to `portal.js`. */
      readonly scripts?: readonly string[];
      /** Additional origins for form targets. */
      readonly formsTo?: readonly string[];
    }
  /** Redirects to a portal path, by default this page. `notice` is a name in `notices`. */
  | {
      readonly kind: 'redirect';
      readonly to?: string;
      readonly notice?: string;
      readonly cookie?: string | readonly string[];
    }
  | { readonly kind: 'external redirect'; readonly to: URL; readonly cookie: string }
  | { readonly kind: 'file'; readonly name: string; readonly type: string; readonly text: string }
  /** Streamed. An error aborts the connection, so that an incomplete file is not mistaken for a complete file. */
  | {
      readonly kind: 'streamed file';
      readonly name: string;
      readonly type: string;
      readonly pieces: AsyncIterable<string>;
    }
  | { readonly kind: 'answered' };

export interface FormAction {
  readonly access: Access;
  /** Requires a sign-in within the last ten minutes. */
  readonly needsFreshSignIn?: boolean;
  /** @throws PublicError, which the page shows together with the submitted values */
  run(visit: Visit, values: FormValues): Promise<Answer>;
}

export interface PortalPage {
  /** Express path pattern. The frame resolves `:project` and `:environment`. */
  readonly path: string;
  readonly access: Access;
  /** @param fault message and submitted values of a failed form action */
  show(visit: Visit, fault?: { readonly message: string; readonly values: FormValues }): Answer | Promise<Answer>;
  /** Form actions, keyed by the name in `visit.form(name, …)`. */
  readonly actions?: Readonly<Record<string, FormAction>>;
  /** Messages, keyed by the name in `{ kind: 'redirect', notice }`. */
  readonly notices?: Readonly<Record<string, string>>;
}
