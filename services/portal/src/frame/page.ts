/** The interface between pages and the frame that shows them. */
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

/** Everyone, everyone who has signed in, or who may do an action in the project of the path. */
export type Access = 'public' | 'signed in' | Action;

export interface FormValues {
  /** Trimmed; '' for a missing field. */
  text(name: string): string;
  /** All values of a repeated field, as typed. */
  all(name: string): readonly string[];
}

/** One checked request: what the path names exists, and the account may see it. */
export interface Visit {
  readonly exchange: Exchange;
  /** Without its query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly userAgent: string;
  readonly address: string;
  /** Aborted when the client disconnects. Pass it to every read. */
  readonly signal: AbortSignal;
  /** Null only on public pages. */
  readonly account: AccountRecord | null;
  readonly session: SessionRecord | null;
  /** Of `:project` in the path. */
  readonly project: ProjectRecord | null;
  /** Of `:environment` in the path. */
  readonly environment: ProjectEnvironment | null;
  readonly params: Readonly<Record<string, string>>;
  /** In the project of the path unless another is given. */
  mayDo(action: Action, projectId?: string): boolean;
  /** For the records of a change: the account and the trace id. */
  readonly author: Author;
  /** A form with a one-time token for an action of this page, or of the page at `path`. */
  form(action: string, content: HtmlValue, options?: { readonly path?: string; readonly className?: string }): Markup;
}

export type Answer =
  | {
      readonly kind: 'page';
      readonly title: string;
      readonly content: HtmlValue;
      /** 200 when absent. */
      readonly status?: number;
      /** Files of `assets` besides `portal.js`. */
      readonly scripts?: readonly string[];
      /** Origins that its forms may lead to, besides the portal's own. */
      readonly formsTo?: readonly string[];
    }
  /** To a path of the portal, this page by default, which shows the notice of that name. */
  | {
      readonly kind: 'redirect';
      readonly to?: string;
      readonly notice?: string;
      readonly cookie?: string | readonly string[];
    }
  /** To one of the `formsTo` of the page. */
  | { readonly kind: 'external redirect'; readonly to: URL; readonly cookie: string }
  | { readonly kind: 'file'; readonly name: string; readonly type: string; readonly text: string }
  /** Sent while it is made. A fault aborts the connection, so that no incomplete file is taken for complete. */
  | {
      readonly kind: 'streamed file';
      readonly name: string;
      readonly type: string;
      readonly pieces: AsyncIterable<string>;
    }
  /** The page has answered the exchange itself. */
  | { readonly kind: 'answered' };

/** The action of a form. */
export interface FormAction {
  readonly access: Access;
  /** Requires a sign-in within the last ten minutes. */
  readonly needsFreshSignIn?: boolean;
  /** @throws PublicError, which is shown above the page with the typed values */
  run(visit: Visit, values: FormValues): Promise<Answer>;
}

export interface PortalPage {
  /** Express path. `:project` and `:environment` are resolved. */
  readonly path: string;
  readonly access: Access;
  /** @param fault message and values of a form action that failed */
  show(visit: Visit, fault?: { readonly message: string; readonly values: FormValues }): Answer | Promise<Answer>;
  /** By the name in `visit.form(name, …)`. */
  readonly actions?: Readonly<Record<string, FormAction>>;
  /** Messages by the name in `{ kind: 'redirect', notice }`. */
  readonly notices?: Readonly<Record<string, string>>;
}
