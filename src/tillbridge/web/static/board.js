/* The 86 board: finds dishes while one types, marks them without loading a page, says at once when the bridge does not
   answer, and keeps the screen on. Plain ES5; without it the forms do the same. */
(function () {
  'use strict';
  var PAUSE_MS = 120, ANSWER_MS = 6000, UNDO_MS = 12000, ALIVE_MS = 5000, TWICE_MS = 500;
  var form = document.getElementById('find-form'), input = document.getElementById('find');
  var marks = document.getElementById('marks'), board = document.getElementById('board');
  var said = document.getElementById('said'), unsaved = document.getElementById('unsaved');
  var timer = null, asked = 0, answered = 0, shown = input.value, saving = 0, over = null, tapped = {};

  function pairs(fields, more) {
    var parts = [], i, field;
    for (i = 0; i < fields.length; i += 1) {
      field = fields[i];
      if (field.name && field.value) {
        parts.push(encodeURIComponent(field.name) + '=' + encodeURIComponent(field.value));
      }
    }
    return parts.concat(more || []).join('&');
  }

  function parsed(text) {
    var made = document.implementation.createHTMLDocument('');
    made.documentElement.innerHTML = text;
    return made;
  }

  /* Shows the tiles of another page. The dish that was tapped, or has the focus, stays where it is in sight. */
  function show(fresh, tapped) {
    var other = fresh.getElementById('board'), active = tapped || document.activeElement, known, top, listed;
    if (!other) { window.location.reload(); return; }
    known = active && board.contains(active) ? active.getAttribute('formaction') : '';
    if (known) { top = active.getBoundingClientRect().top; listed = isListed(active); }
    board.innerHTML = other.innerHTML;
    if (other.hasAttribute('data-soon')) { board.setAttribute('data-soon', other.getAttribute('data-soon')); }
    document.title = fresh.title;
    if (known) { focusOn(known, top, listed); }
  }

  /* Whether a button stands in the list of what is sold out now; the same dish has one on the menu. */
  function isListed(button) { return button.id.indexOf('off-') === 0; }

  function buttonFor(path, listed) {
    var all = board.querySelectorAll('button'), dish = path.replace(/\/[a-z0-9]+$/, ''), i;
    for (i = 0; i < all.length; i += 1) {
      if (isListed(all[i]) === listed && (all[i].getAttribute('formaction') || '').replace(/\/[a-z0-9]+$/, '') === dish) { return all[i]; }
    }
    return null;
  }

  /* After a tap the button of the same dish does the opposite. The list above may have become longer or shorter. */
  function focusOn(path, top, listed) {
    var button = buttonFor(path, listed), first = board.querySelector('button');
    if (button) {
      button.focus();
      window.scrollBy(0, button.getBoundingClientRect().top - top);
    } else if (listed && first) { first.focus(); }
  }

  /* -- finding */

  function address() {
    var query = pairs(form.elements);
    return form.getAttribute('action') + (query ? '?' + query : '');
  }

  function ask(then) {
    var request = new XMLHttpRequest(), number = (asked += 1), where = address(), text = input.value;
    request.open('GET', where);
    request.timeout = 10000;
    request.onload = function () {
      if (number !== asked) { return; }
      answered = number;
      if (request.status !== 200) { window.location.reload(); return; }
      show(parsed(request.responseText));
      shown = text;
      keep('q', text);
      keep('category', '');
      keep('page', '');
      if (window.history.replaceState) { window.history.replaceState(null, '', where); }
      if (then) { then(); }
    };
    request.onerror = request.ontimeout = function () { answered = number; };
    request.send();
  }

  function keep(name, value) {
    var fields = document.querySelectorAll('#marks > [name=' + name + '], #find-form > [type=hidden][name=' + name + ']'), i;
    for (i = 0; i < fields.length; i += 1) { fields[i].value = value; }
  }

  function toFirst() {
    var first = board.querySelector('.tile button');
    if (first) { first.focus(); }
  }

  input.addEventListener('input', function () {
    window.clearTimeout(timer);
    timer = window.setTimeout(function () { timer = null; ask(null); }, PAUSE_MS);
  });
  form.addEventListener('submit', function (event) {
    event.preventDefault();
    window.clearTimeout(timer);
    timer = null;
    if (shown === input.value) { toFirst(); } else { ask(toFirst); }
  });
  document.addEventListener('keydown', function (event) {
    var at = document.activeElement;
    if (event.key === 'Escape') { input.value = ''; input.focus(); ask(null); return; }
    if (event.ctrlKey || event.altKey || event.metaKey || !event.key || event.key.length !== 1) { return; }
    if (event.key === ' ' || (at && /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName))) { return; }
    input.focus();
  });

  /* -- marking */

  marks.addEventListener('click', function (event) {
    var link = event.target, all = marks.querySelectorAll('[data-until]'), i;
    while (link && link !== marks && link.tagName !== 'A') { link = link.parentNode; }
    if (!link || link === marks || !link.getAttribute('data-until')) { return; }
    event.preventDefault();
    for (i = 0; i < all.length; i += 1) { all[i].removeAttribute('aria-current'); }
    link.setAttribute('aria-current', 'true');
    keep('until', link.getAttribute('data-until'));
  });

  function refuse(kind, dish) {
    unsaved.textContent = unsaved.getAttribute('data-' + kind).replace('{dish}', dish);
    unsaved.hidden = false;
    if (unsaved.getBoundingClientRect().top < 0) { unsaved.scrollIntoView(false); }
  }

  function send(path, body, button) {
    var request = new XMLHttpRequest(), name = button && (button.querySelector('b') || button), dish = name ? name.textContent : '';
    saving += 1;
    if (button) { button.className += ' busy'; button.setAttribute('aria-busy', 'true'); }
    function ended(kind) {
      saving -= 1;
      if (button) {
        button.className = button.className.replace(/ ?\bbusy\b/, '');
        button.removeAttribute('aria-busy');
      }
      if (kind) { refuse(kind, dish); }
    }
    request.open('POST', path);
    request.setRequestHeader('Content-Type', 'application/x-www-form-urlencoded');
    request.timeout = ANSWER_MS;
    request.onload = function () {
      var fresh = parsed(request.responseText), told = fresh.getElementById('said');
      if (request.status === 401 || fresh.querySelector('input[type=password]')) { ended('signed-out'); return; }
      if (request.status !== 200 || !told) { ended('refused'); return; }
      ended('');
      unsaved.hidden = true;
      show(fresh, button || buttonFor(path, false));
      tell(told.innerHTML);
    };
    request.onerror = request.ontimeout = function () {
      ended('text');
      if (window.tillbridgeDead) { window.tillbridgeDead(); }
    };
    request.send(body);
  }

  function tell(text) {
    window.clearTimeout(over);
    said.innerHTML = text;
    if (text) { over = window.setTimeout(fade, UNDO_MS); }
  }

  /* Undo goes away by itself, but not from under a finger. */
  function fade() {
    if (said.contains(document.activeElement)) { over = window.setTimeout(fade, UNDO_MS); return; }
    said.innerHTML = '';
  }

  function buttonOf(target, within) {
    while (target && target !== within && target.tagName !== 'BUTTON') { target = target.parentNode; }
    return target && target !== within && target.type === 'submit' ? target : null;
  }

  board.addEventListener('click', function (event) {
    var button = buttonOf(event.target, board), path = button && button.getAttribute('formaction'), dish, now = Date.now();
    if (!path) { return; }
    event.preventDefault();
    /* A wet finger taps twice: the second would take back the first. */
    dish = path.replace(/\/[a-z0-9]+$/, '');
    if (tapped[dish] && now - tapped[dish] < TWICE_MS) { return; }
    tapped[dish] = now;
    send(path, pairs(marks.elements), button);
  });
  said.addEventListener('submit', function (event) {
    event.preventDefault();
    tapped = {};
    send(event.target.getAttribute('action'), pairs(event.target.elements), null);
  });

  /* A refresh comes after what somebody has just typed or tapped; it tells when guests see no more of it. */
  window.tillbridgeRefreshed = function () {
    var told = said.querySelector('[data-item]'), place = told && told.querySelector('.reach'), tiles, i, reach;
    if (!place || !told.getAttribute('data-item')) { return; }
    tiles = board.querySelectorAll('[data-item]');
    for (i = 0; i < tiles.length; i += 1) {
      reach = tiles[i].querySelector('.reach');
      if (reach && tiles[i].getAttribute('data-item') === told.getAttribute('data-item')
          && place.textContent !== reach.textContent) {
        place.textContent = reach.textContent;
      }
    }
  };
  window.tillbridgeBusy = function () { return saving > 0 || timer !== null || asked !== answered; };

  /* -- is the bridge there: asked more often than elsewhere, since somebody relies on what is shown */

  window.setInterval(function () {
    var request;
    if (document.hidden) { return; }
    request = new XMLHttpRequest();
    request.open('GET', '/healthz');
    request.timeout = ALIVE_MS - 500;
    request.onload = function () {
      if (/\bstale\b/.test(document.body.className) && window.tillbridgeRefresh) { window.tillbridgeRefresh(); }
    };
    request.onerror = request.ontimeout = function () { if (window.tillbridgeDead) { window.tillbridgeDead(); } };
    request.send();
  }, ALIVE_MS);

  /* -- the screen stays on while the board is in sight (Screen Wake Lock API; only over https or on this machine) */

  (function () {
    var button = document.getElementById('awake'), lock = null;
    function wanted(value) {
      try {
        if (value !== undefined) { window.localStorage.setItem('awake', value ? 'yes' : 'no'); }
        return window.localStorage.getItem('awake') !== 'no';
      } catch (refused) { return value !== false; }
    }
    function say() { button.setAttribute('aria-checked', lock ? 'true' : 'false'); }
    function take() {
      if (lock || document.hidden || !wanted()) { return; }
      navigator.wakeLock.request('screen').then(function (given) {
        lock = given;
        say();
        lock.addEventListener('release', function () { lock = null; say(); });
      }, say);
    }
    if (!('wakeLock' in navigator)) { return; }
    button.disabled = false;
    button.addEventListener('click', function () {
      if (lock) { wanted(false); lock.release(); } else { wanted(true); take(); }
    });
    document.addEventListener('visibilitychange', take);
    take();
  }());
}());
