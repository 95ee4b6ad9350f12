import { type Article, articlePath, type DocsSource } from '../source.ts';
import { html } from './html.ts';
import { toPage } from './page.ts';

/** A page beside those of the interface. */
export function createArticlePage(source: DocsSource, article: Article): string {
  const { title, summary, content } = article;
  return toPage(source, {
    title,
    path: articlePath(article),
    content: html`<p class="lead">${summary}</p>\n${content}`,
  });
}
