/** Shows how far an erasure is. A script reloads the steps until the receipt exists. */
import { type HtmlValue, html } from '@playline/api-docs';
import { panel, shortened, status, time } from '../../frame/components.ts';
import { duration, number } from '../../frame/format.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { PortalPage } from '../../frame/page.ts';
import { pageNotFound, scopeOf } from '../../frame/scope.ts';
import type { ErasureLine } from '../../reads/index.ts';
import type { PageParts } from '../index.ts';
import { ERASURE_ID, PATH } from './page.ts';

export function createErasurePage({ reads }: Pick<PageParts, 'reads'>): PortalPage {
  return {
    path: `${PATH}/:erasure`,
    access: 'erasures.read',
    show: async (visit) => {
      const erasureId = visit.params.erasure ?? '';
      if (!ERASURE_ID.test(erasureId)) throw pageNotFound();
      const environmentId = scopeOf(visit).environment.id;
      const erasure = await reads.erasure({ environmentId, erasureId }, { signal: visit.signal });
      const isComplete = erasure !== null && erasure.state !== 'waiting';
      const receipt = html`<a class="btn" href="${pathInEnvironment(visit, `erasures/${erasureId}/receipt`)}" download>Download receipt</a>`;
      const wait = html`<p class="muted" role="status">Erasures usually take less than a minute. This page updates by itself; without JavaScript, reload it.</p>`;
      const steps = html`<ol class="steps">${toSteps(erasure ?? {})}</ol>${isComplete ? '' : wait}`;
      return {
        kind: 'page',
        title: isComplete ? 'Person erased' : 'Erasing a person',
        actions: isComplete ? receipt : '',
        content: html`<div class="erasure" data-complete="${String(isComplete)}">${panel('Progress', steps, { note: erasure === null ? '' : shortened(erasureId, 'the erasure id') })}</div>
<p><a href="${pathInEnvironment(visit, 'erasures')}">All erasures</a></p>`,
        scripts: ['erasure.js'],
      };
    },
  };
}

type Step = readonly [title: string, doneMs: number | null, note: HtmlValue];

/** @param erasure empty until the eraser has stored the request, which takes about a second */
function toSteps(erasure: Partial<ErasureLine>): HtmlValue {
  const { requestedMs = null, fencedMs = null, visiblyErasedMs: erasedMs = null, identities = null } = erasure;
  const { deleted = null, physicallyErasedMs = null, logExpiresMs = null, logExpiredMs = null } = erasure;
  const found = identities === null ? '' : `of ${number(identities)} ${identities === 1 ? 'identity' : 'identities'}`;
  const nothing = 'Nothing was stored about this person. Check that the id in the request is correct.';
  const records = `${number(deleted ?? 0)} ${deleted === 1 ? 'record' : 'records'} ${found}`;
  const erased = `${records} deleted. Complete when a search of all stores finds nothing; the receipt then states the counts.`;
  const steps: Step[] = [
    [
      'Requested',
      requestedMs,
      requestedMs === null ? 'Waiting for the eraser to store the request.' : time(requestedMs),
    ],
    ['Fenced', fencedMs, 'Blocks late messages from before the request.'],
    ['Erased', erasedMs, erasedMs !== null && deleted === 0 ? nothing : erased],
    ['Disks purged', physicallyErasedMs, 'ClickHouse rewrites its files.'],
    [
      'Log expired',
      logExpiredMs,
      logExpiresMs === null ? 'Kafka deletes its old records.' : html`Due ${time(logExpiresMs)}`,
    ],
  ];
  const current = steps.find(([, doneMs]) => doneMs === null);
  return steps.map((step) => {
    const [title, doneMs, note] = step;
    const after =
      doneMs === null || requestedMs === null || step === steps[0] ? '' : `after ${duration(doneMs - requestedMs)}`;
    return html`<li class="${doneMs === null ? '' : 'done'}"${step === current ? html` aria-current="step"` : ''}>${status(doneMs === null ? 'wait' : 'ok', title)} <span>${note}</span> <span class="muted">${after}</span></li>\n`;
  });
}
