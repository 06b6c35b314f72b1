/* Keeps the page as it is now: refreshes its marked regions when the bridge says that something has
   changed, and now and then for the ages it shows. Plain ES5 for a till's old browser; without it the
   page is read by reloading. */
(function () {
  'use strict';
  var AGES_MS = 30000, NO_STREAM_MS = 10000, LATE_MS = 45000;
  var place = document.body.getAttribute('data-live'), version = document.body.getAttribute('data-version');
  var banner = document.getElementById('not-live');
  var source = null, asking = false, again = false, heard = Date.now(), working = true;
  var timer = null, later = null, title = document.title;
  var icon = document.getElementById('icon'), shown = icon && icon.getAttribute('href');

  function regions(from) {
    return from.querySelectorAll('[data-region]');
  }

  /* Somebody types there, or what was pressed there has no answer yet. */
  function busy(region) {
    var active = document.activeElement;
    return region.querySelector('button[aria-busy]') || active && region.contains(active) && /^(INPUT|SELECT|TEXTAREA)$/.test(active.tagName)
      && !active.readOnly;
  }

  /* A region that changes without the bridge telling of it says after how many ms to look again. */
  function soon() {
    var waits = document.querySelector('[data-soon]'), ms;
    window.clearTimeout(later);
    if (waits) {
      ms = parseInt(waits.getAttribute('data-soon'), 10) || AGES_MS;
      later = window.setTimeout(function () {
        if (document.hidden) { soon(); } else { refresh(); }
      }, ms);
    }
  }

  /* A page whose forms change with its state is loaded anew, unless somebody is typing or has pressed a button. */
  function moved(fresh) {
    var now = document.querySelector('[data-reload]'), then = fresh.querySelector('[data-reload]'),
      part = then && then.getAttribute('data-reload');
    if (!now || !then || now.getAttribute('data-reload') === part || busy(document.body)) { return false; }
    window.location.hash = part;
    window.location.reload();
    return true;
  }

  function swap(fresh) {
    var old = regions(document), i, other, active, known;
    if (moved(fresh)) { return; }
    /* A page that is saving or finding something shows what came of that by itself. */
    if (typeof window.tillbridgeBusy === 'function' && window.tillbridgeBusy()) { again = true; return; }
    for (i = 0; i < old.length; i += 1) {
      other = fresh.getElementById(old[i].id);
      if (other && !busy(old[i])) {
        if (old[i].className !== other.className) { old[i].className = other.className; }
        keepOpen(old[i], other);
        if (old[i].innerHTML !== other.innerHTML) {
          active = document.activeElement;
          known = active && old[i].contains(active) ? what(active) : '';
          old[i].innerHTML = other.innerHTML;
          if (known) { focusAgain(old[i], known); }
        }
      }
    }
    if (fresh.title) { document.title = fresh.title; }
    picture(fresh.getElementById('icon') && fresh.getElementById('icon').getAttribute('href'));
    if (typeof window.tillbridgeRefreshed === 'function') { window.tillbridgeRefreshed(document); }
  }

  /* A browser looks at the tab's picture again only when its link is a new one. */
  function picture(href) {
    var link;
    if (!icon || !href || icon.getAttribute('href') === href) { return; }
    link = icon.cloneNode(false);
    link.setAttribute('href', href);
    icon.parentNode.replaceChild(link, icon);
    icon = link;
  }

  /* What somebody has opened or shut stays so. */
  function keepOpen(old, other) {
    var before = old.querySelectorAll('details'), after = other.querySelectorAll('details'), states = {}, i;
    for (i = 0; i < before.length; i += 1) { states[headOf(before[i])] = before[i].hasAttribute('open'); }
    for (i = 0; i < after.length; i += 1) {
      if (states[headOf(after[i])] === true) { after[i].setAttribute('open', ''); }
      if (states[headOf(after[i])] === false) { after[i].removeAttribute('open'); }
    }
  }

  function headOf(details) {
    return 'of ' + (details.id || details.querySelector('summary').textContent);
  }

  /* Says which control this is, in words that outlive a refresh. */
  function what(control) {
    var name = control.id || control.getAttribute('formaction') || control.getAttribute('href');
    if (name) { return name; }
    return (control.form ? control.form.getAttribute('action') : '') + ' ' + control.textContent;
  }

  function focusAgain(region, known) {
    var all = region.querySelectorAll('a, button, summary'), i;
    for (i = 0; i < all.length; i += 1) {
      if (what(all[i]) === known) { all[i].focus(); return; }
    }
  }

  function parsed(text) {
    var made = document.implementation.createHTMLDocument('');
    made.documentElement.innerHTML = text;
    return made;
  }

  function refresh() {
    var request, where = window.location.href.split('#')[0];
    if (asking) { again = true; return; }
    asking = true;
    request = new XMLHttpRequest();
    request.open('GET', where);
    request.setRequestHeader('X-Live', '1');
    request.timeout = 15000;
    request.onload = function () {
      if (request.status === 401 || request.status === 403) { window.location.reload(); return; }
      if (request.status === 200) {
        alive();
        /* What was asked for may not be what is looked at any more. */
        if (where === window.location.href.split('#')[0]) { swap(parsed(request.responseText)); } else { again = true; }
      } else { dead(); }
      next();
    };
    request.onerror = request.ontimeout = function () { dead(); next(); };
    request.send();
  }

  function next() {
    asking = false;
    soon();
    if (again) { again = false; window.setTimeout(refresh, 200); }
  }

  function alive() {
    heard = Date.now();
    if (!working) {
      working = true;
      banner.hidden = true;
      banner.textContent = '';
      document.body.className = document.body.className.replace(/ ?\bstale\b/, '');
      document.title = title;
      picture(shown);
    }
  }

  /* What was known is no more than that: it turns grey, and the verdict says since when. */
  function dead() {
    if (!working) { return; }
    working = false;
    var at = new Date(heard), two = function (n) { return (n < 10 ? '0' : '') + n; },
      time = two(at.getHours()) + ':' + two(at.getMinutes()) + ':' + two(at.getSeconds()),
      verdict = document.querySelector('[data-dead]');
    banner.textContent = banner.getAttribute('data-text').replace('{time}', time);
    banner.hidden = false;
    document.body.className = (document.body.className ? document.body.className + ' ' : '') + 'stale';
    title = document.title;
    shown = icon && icon.getAttribute('href');
    picture(banner.getAttribute('data-icon'));
    document.title = banner.getAttribute('data-title').replace('{time}', time) + ' \u00b7 tillbridge';
    if (verdict) {
      verdict.className = 'verdict down';
      verdict.innerHTML = '';
      verdict.appendChild(made('h1', verdict.getAttribute('data-dead').replace('{time}', time)));
      verdict.appendChild(made('p', verdict.getAttribute('data-dead-text')));
    }
  }

  function made(name, text) {
    var element = document.createElement(name);
    element.textContent = text;
    return element;
  }

  function every(ms) {
    if (timer) { window.clearInterval(timer); }
    timer = window.setInterval(function () { if (!document.hidden) { refresh(); } }, ms);
  }

  function listen() {
    if (!window.EventSource) { every(NO_STREAM_MS); return; }
    if (source || document.hidden) { return; }
    source = new window.EventSource(place);
    /* What changed between the page and its stream would be missed. */
    source.addEventListener('hello', function (event) {
      alive();
      if (event.data !== version) { refresh(); }
      version = '';
      every(AGES_MS);
    });
    source.addEventListener('change', function () { alive(); refresh(); });
    source.addEventListener('ended', function () { window.location.reload(); });
    source.onerror = function () {
      if (source && source.readyState === 2) { source.close(); source = null; every(NO_STREAM_MS); }
      refresh();
    };
  }

  /* A page that nobody sees needs no stream; a browser has only six connections for all its tabs. */
  document.addEventListener('visibilitychange', function () {
    if (document.hidden) {
      if (source) { source.close(); source = null; }
    } else {
      refresh();
      listen();
    }
  });
  window.addEventListener('pagehide', function () { if (source) { source.close(); source = null; } });
  window.addEventListener('pageshow', function (event) { if (event.persisted) { listen(); } });
  window.setInterval(function () {
    if (working && !document.hidden && Date.now() - heard > LATE_MS) { dead(); }
  }, 5000);

  /* What was just done is told once: reloading should not ask for it again. */
  if (window.history.replaceState && /[?&]said=/.test(window.location.search)) {
    window.history.replaceState(null, '', window.location.pathname
      + window.location.search.replace(/([?&])said=[^&]*&?/, '$1').replace(/[?&]$/, ''));
  }

  /* Focus goes to what was just done, or back to the button whose question was answered with no. */
  function here() {
    return window.location.pathname + window.location.search;
  }

  function kept(value) {
    try {
      if (value !== undefined) { window.sessionStorage.setItem('left', JSON.stringify(value)); }
      return JSON.parse(window.sessionStorage.getItem('left') || 'null');
    } catch (refused) { return null; }
  }

  document.addEventListener('click', function (event) {
    var link = event.target;
    while (link && link.tagName !== 'A') { link = link.parentNode; }
    if (link && link.href) { kept({page: here(), control: what(link), to: link.href}); }
  });

  (function () {
    var told = document.querySelector('.flash'), left = kept();
    if (told) {
      told.setAttribute('tabindex', '-1');
      told.focus();
    } else if (left && left.page === here() && document.referrer === left.to) {
      kept(null);
      focusAgain(document.body, left.control);
    }
  }());

  /* A button that was pressed looks it until the answer is there, and does not act twice. */
  document.addEventListener('submit', function (event) {
    var form = event.target, button = event.submitter || form.querySelector('button');
    if (event.defaultPrevented || form.getAttribute('method') !== 'post' || !button) { return; }
    if (button.hasAttribute('aria-busy')) { event.preventDefault(); return; }
    button.setAttribute('aria-busy', 'true');
  });
  window.addEventListener('pageshow', function (event) {
    if (!event.persisted) { return; }
    var pressed = document.querySelectorAll('button[aria-busy]'), i;
    for (i = 0; i < pressed.length; i += 1) { pressed[i].removeAttribute('aria-busy'); }
  });
  window.tillbridgeDead = dead;
  window.tillbridgeRefresh = refresh;
  listen();
  soon();
}());
