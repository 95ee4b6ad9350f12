import { createMetrics } from '@playline/runtime';
import { expect, it } from 'vitest';
import { createPortalApp } from '../../../services/portal/src/app.ts';
import { openPortal } from '../../../services/portal/src/test/open-portal.ts';
import { pathsOf, UNMEASURED } from './pages.ts';

/** Routes that are not pages, or that redirect to the documentation. */
const NOT_A_PAGE = /^\/(assets|docs)\b|\{\*unknown\}/;

it('the bench measures every portal page, or lists why a page is not measured', async () => {
  const portal = await openPortal();
  const routes = createPortalApp({ ...portal.parts, metrics: createMetrics('portal') }).routes;
  await portal.close();
  const pages = new Set(routes.filter(({ method }) => method === 'GET').map(({ path }) => path));
  const measured = pathsOf({ projectId: 'p', environment: 'e', invitation: '/invitation?code=c' });
  const isMeasured = (page: string) => {
    const pattern = new RegExp(`^${page.replace(/:\w+/g, '[^/?]+')}(\\?.*)?$`);
    return measured.some((path) => pattern.test(path));
  };
  const unmeasured = [...pages].filter((page) => !NOT_A_PAGE.test(page) && !isMeasured(page));
  expect(unmeasured.toSorted()).toEqual(Object.keys(UNMEASURED).toSorted());
});
