/** Loads demo data into a development environment. */
import { type HtmlValue, html } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import { number } from '../../frame/components.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PageParts } from '../index.ts';
import type { DemoState } from './loader.ts';

type Parts = Pick<PageParts, 'demo' | 'writeAudit'>;

export function createDemoPage({ demo, writeAudit }: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/demo',
    access: 'demo.load',
    show: (visit) => {
      const { environment } = scopeOf(visit);
      return { kind: 'page', title: 'Demo data', content: toContent(visit, demo.stateOf(environment.id)) };
    },
    actions: {
      load: {
        access: 'demo.load',
        run: async (visit) => {
          const { project, environment } = scopeOf(visit);
          if (environment.kind !== 'development' || project.state === 'archived')
            throw invalidField('environment', 'Demo data can only be loaded into development environments.');
          demo.start(environment.id);
          await writeAudit(visit, { action: 'demo.load', object: environment.id });
          return { kind: 'redirect' };
        },
      },
    },
  };
}

function toContent(visit: Visit, state: DemoState | null): HtmlValue {
  if (scopeOf(visit).environment.kind !== 'development')
    return html`<p>Demo data can only be loaded into development environments. Switch to a development environment.</p>`;
  const button = state === null ? 'Load demo data' : 'Load demo data again';
  return html`<section class="panel"><div class="body"><p>This loads 30 days of a generated game, Ember Valley: about 2,000 players with sessions, a tutorial, purchases and consents, and a client release that sends invalid messages for a day. Loading takes about half a minute. Loading again adds no events, but records the rejections again.</p>
${state === null ? '' : toProgress(visit, state)}
${state?.kind === 'running' ? html`<p><a class="button" href="${visit.path}">Update</a></p>` : visit.form('load', html`<button>${button}</button>`)}</div></section>`;
}

function toProgress(visit: Visit, { kind, days, messages }: DemoState): HtmlValue {
  if (kind === 'running')
    return html`<p role="status">Loading: <progress max="30" value="${days}" aria-label="Loaded days"></progress> ${days} of 30 days, ${number(messages)} messages.</p>`;
  if (kind === 'failed')
    return html`<p role="alert">Loading failed after ${days} of 30 days. Load the data again; no event is stored twice.</p>`;
  return html`<p role="status">${number(messages)} messages of 30 days are loaded. <a href="${pathInEnvironment(visit, 'overview')}">Open the overview</a></p>`;
}
